// Drives a served cluster with the JavaScript client; KUBECONFIG names it (conformance/clients/run starts one).

import assert from 'node:assert/strict';
import net from 'node:net';
import { PassThrough, Readable } from 'node:stream';
import { after, before, test } from 'node:test';
import * as k8s from '@kubernetes/client-node';

const PATIENCE_MS = 30_000;

const config = new k8s.KubeConfig();
config.loadFromDefault();
const core = config.makeApiClient(k8s.CoreV1Api);
const apps = config.makeApiClient(k8s.AppsV1Api);
const objects = k8s.KubernetesObjectApi.makeApiClient(config);
let namespace;

before(async () => {
  const made = await core.createNamespace({ body: { metadata: { generateName: 'javascript-' } } });
  namespace = made.metadata.name;
});

after(() => core.deleteNamespace({ name: namespace }));

/** What the condition gives, once that is true. */
async function eventually(condition) {
  const deadline = Date.now() + PATIENCE_MS;
  for (;;) {
    const found = await condition();
    if (found) return found;
    assert.ok(Date.now() < deadline, `not in time: ${condition}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The code and reason of a refusal. */
async function refusal(promise) {
  const error = await promise.then(() => assert.fail('not refused'), (error) => error);
  const body = typeof error.body === 'string' ? JSON.parse(error.body) : error.body;
  return [error.code, body.reason];
}

async function runningPod(name, container) {
  const body = { metadata: { name }, spec: { containers: [{ name: 'c', ...container }] } };
  await core.createNamespacedPod({ namespace, body });
  await eventually(async () => (await core.readNamespacedPod({ name, namespace })).status.phase === 'Running');
}

test('objects', async () => {
  const body = { metadata: { name: 'one' }, data: { a: '1' } };
  const made = await core.createNamespacedConfigMap({ namespace, body });
  assert.ok(made.metadata.uid);
  assert.deepEqual(await refusal(core.createNamespacedConfigMap({ namespace, body })), [409, 'AlreadyExists']);
  made.data.a = '2';
  await core.replaceNamespacedConfigMap({ name: 'one', namespace, body: made });
  assert.deepEqual(await refusal(core.replaceNamespacedConfigMap({ name: 'one', namespace, body: made })), [409, 'Conflict']);
  const patch = [{ op: 'add', path: '/data/b', value: '3' }];
  const patched = await core.patchNamespacedConfigMap({ name: 'one', namespace, body: patch });
  assert.deepEqual(patched.data, { a: '2', b: '3' });
  await core.deleteNamespacedConfigMap({ name: 'one', namespace });
  assert.deepEqual(await refusal(core.readNamespacedConfigMap({ name: 'one', namespace })), [404, 'NotFound']);
});

test('a watch', async () => {
  const seen = [];
  const watch = new k8s.Watch(config);
  const ended = Promise.withResolvers?.() ?? deferred();
  const request = await watch.watch(`/api/v1/namespaces/${namespace}/secrets`, {}, (type) => {
    seen.push(type);
    if (type === 'DELETED') ended.resolve();
  }, (error) => ended.reject(error ?? new Error('the watch has ended')));
  await core.createNamespacedSecret({ namespace, body: { metadata: { name: 's' } } });
  await core.deleteNamespacedSecret({ name: 's', namespace });
  await ended.promise;
  request.abort();
  assert.deepEqual(seen, ['ADDED', 'DELETED']);
});

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  return made;
}

test('an informer follows a deployment', async () => {
  const list = () => core.listNamespacedPod({ namespace, labelSelector: 'app=web' });
  const informer = k8s.makeInformer(config, `/api/v1/namespaces/${namespace}/pods`, list, 'app=web');
  await informer.start();
  const labels = { app: 'web' };
  await apps.createNamespacedDeployment({ namespace, body: {
    metadata: { name: 'web' },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: {
      metadata: { labels }, spec: { containers: [{ name: 'c', image: 'nginx' }] } } },
  } });
  const isReady = (pod) => pod.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True');
  await eventually(() => informer.list(namespace).filter(isReady).length === 3);
  await apps.deleteNamespacedDeployment({ name: 'web', namespace });
  await eventually(() => informer.list(namespace).length === 0);
  await informer.stop();
});

test('server-side apply and objects of any kind', async () => {
  const spec = (data) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'm', namespace }, data });
  const apply = (manager, data, force) =>
    objects.patch(spec(data), undefined, undefined, manager, force, k8s.PatchStrategy.ServerSideApply);
  await apply('ours', { a: '1' });
  assert.deepEqual(await refusal(apply('theirs', { a: '2' })), [409, 'Conflict']);
  await apply('theirs', { a: '2' }, true);
  const made = await objects.read(spec({}));
  assert.equal(made.data.a, '2');
  const listed = await objects.list('v1', 'ConfigMap', namespace);
  assert.ok(listed.items.some((item) => item.metadata.name === 'm'));
});

test('logs and commands', async () => {
  await runningPod('logs', { image: 'busybox', command: ['sh', '-c', 'echo up; sleep 1; echo later; sleep 1000'] });
  const log = new k8s.Log(config);
  const lines = new PassThrough();
  let text = '';
  lines.on('data', (piece) => (text += piece));
  const request = await log.log(namespace, 'logs', 'c', lines, { follow: true });
  await eventually(() => text === 'up\nlater\n');
  request.abort();

  const exec = new k8s.Exec(config);
  const run = (command, input) => new Promise((resolve, reject) => {
    const out = new PassThrough();
    let printed = '';
    out.on('data', (piece) => (printed += piece));
    const stdin = input === undefined ? null : Readable.from([input]);
    exec.exec(namespace, 'logs', 'c', command, out, null, stdin, false, (status) => resolve([printed, status])).catch(reject);
  });
  const [printed, status] = await run(['echo', 'hello']);
  assert.deepEqual([printed, status.status], ['hello\n', 'Success']);
  const [, failed] = await run(['sh', '-c', 'exit 4']);
  assert.equal(failed.details.causes[0].message, '4');
});

test('a port', async () => {
  await runningPod('port', { image: 'nginx', ports: [{ containerPort: 80 }] });
  const forward = new k8s.PortForward(config);
  const server = net.createServer((socket) => forward.portForward(namespace, 'port', [80], socket, null, socket));
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const response = await fetch(`http://127.0.0.1:${server.address().port}/`, { headers: { connection: 'close' } });
  assert.match(await response.text(), new RegExp(`pod: ${namespace}/port`));
  server.close();
});

//! The manager's process, from its flags to its end.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use client_kit::{Seed, SharedClock};
use kube::Client;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

use super::configurations::{self, Reach};
use super::connect::{connect, queued};
use super::definitions::{kinds_without_definition, settle_gates, wait_for_definitions};
use super::election::{Election, Timings};
use super::flag_table;
use super::flags::Flags;
use super::gates::FeatureGates;
use super::{ProcessError, endpoints, install, secret, uninstall, webhooks};
use crate::Manager;
use crate::images::SECRETS_NAMESPACE;
use crate::kit::RetryDelays;
use crate::metrics::{IS_LEADER, Metrics};
use crate::webhook::{Surroundings, WebhookCaches};
use crate::workloads::{Options, Settings};

/// The manager's name in its requests.
const USER_AGENT: &str = "kruise-manager";
/// How often certificates and configurations are looked at again (OpenKruise: a minute).
const LOOK_AGAIN: Duration = Duration::from_secs(60);
/// The first delay after that has failed; each further one is twice as long, up to `LOOK_AGAIN`.
const FIRST_RETRY: Duration = Duration::from_millis(200);

/// The variables of the environment, under OpenKruise's names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Environment {
    /// `POD_NAMESPACE`.
    pub namespace: String,
    /// `KRUISE_DAEMON_CONFIG_NS`: the namespace of the Secrets that the daemon may read.
    pub secrets_namespace: String,
    /// `SECRET_NAME`.
    pub secret: String,
    /// `SERVICE_NAME`.
    pub service: String,
    /// `WEBHOOK_HOST`: the host of a manager that runs outside of the cluster; empty inside.
    pub host: String,
    /// `WEBHOOK_PORT`.
    pub port: u16,
    /// `HOSTNAME`: the first half of the name under which it is elected.
    pub hostname: String,
    /// `CUSTOM_RESOURCE_ENABLE`: see [`FeatureGates::parse_beside`].
    pub custom_resources: String,
}

impl Environment {
    /// Reads it with `get`, which gives a variable's value.
    ///
    /// # Errors
    /// If the port is no port.
    pub fn read(get: impl Fn(&str) -> Option<String>) -> Result<Self, ProcessError> {
        let text = |name: &str, default: &str| {
            get(name)
                .filter(|value| !value.is_empty())
                .unwrap_or_else(|| default.to_owned())
        };
        let port = text("WEBHOOK_PORT", &install::WEBHOOK_PORT.to_string());
        Ok(Self {
            namespace: text("POD_NAMESPACE", install::NAMESPACE),
            secrets_namespace: text("KRUISE_DAEMON_CONFIG_NS", SECRETS_NAMESPACE),
            secret: text("SECRET_NAME", install::SECRET),
            service: text("SERVICE_NAME", install::SERVICE),
            host: text("WEBHOOK_HOST", ""),
            port: port
                .parse()
                .map_err(|_| ProcessError::Flag(format!("WEBHOOK_PORT {port:?} is no port")))?,
            hostname: text("HOSTNAME", "kruise-manager"),
            custom_resources: text("CUSTOM_RESOURCE_ENABLE", ""),
        })
    }

    /// How the API server reaches the webhooks: by `url` if there is one, by the host, or through the Service.
    fn reach(&self, url: &str) -> Reach {
        match (url, self.host.as_str()) {
            ("", "") => Reach::Service {
                namespace: self.namespace.clone(),
                name: self.service.clone(),
            },
            ("", host) => Reach::Url(format!("https://{host}:{}", self.port)),
            (url, _) => Reach::Url(url.to_owned()),
        }
    }

    /// The names that the certificate has to have.
    fn hosts(&self, reach: &Reach) -> Vec<String> {
        match reach {
            Reach::Service { namespace, name } => vec![format!("{name}.{namespace}.svc")],
            Reach::Url(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let authority = rest.split('/').next().unwrap_or_default();
                let host = match authority.strip_prefix('[') {
                    Some(six) => six.split(']').next().unwrap_or_default(),
                    None => authority.split(':').next().unwrap_or_default(),
                };
                vec![host.to_owned()]
            }
        }
    }
}

/// Runs the manager with `flags` until `stop` is ready.
///
/// # Errors
/// If it cannot start, or loses its leadership.
pub async fn run(flags: &Flags, environment: &Environment, stop: impl Future) -> Result<(), ProcessError> {
    let client = connect(flags.text("kubeconfig"), USER_AGENT).await?;
    if flags.is_set("check-uninstall") {
        return uninstall::check(&client).await;
    }
    run_with(client, flags, environment, Options::default(), stop).await
}

/// The same with a client and options that are there already: whose clock, names and planner it uses.
///
/// # Errors
/// If it cannot start, or loses its leadership.
pub async fn run_with(
    client: Client,
    flags: &Flags,
    environment: &Environment,
    options: Options,
    stop: impl Future,
) -> Result<(), ProcessError> {
    let mut gates = FeatureGates::parse_beside(&environment.custom_resources, flags.text("feature-gates"))?;
    refuse_other_locks(flags)?;
    let metrics = Arc::clone(&options.metrics);
    let clock = Arc::clone(&options.clock);
    if flags.is_set("install") {
        let namespaces = (
            environment.namespace.as_str(),
            environment.secrets_namespace.as_str(),
        );
        install::install(&client, namespaces, &gates).await?;
    }
    let mut tasks = JoinSet::new();
    let state = endpoints::State {
        metrics: Arc::clone(&metrics),
        webhooks_ready: Arc::new(AtomicBool::new(false)),
    };
    serve_endpoints(&mut tasks, flags, &state).await?;
    let tls = webhooks::Tls::default();
    let listener = endpoints::listen(&format!(":{}", environment.port)).await?;
    let surroundings = Surroundings {
        client: Some(client.clone()),
        gates: gates.clone(),
        namespace: environment.namespace.clone(),
        caches: WebhookCaches::default(),
        clock: Arc::clone(&clock),
        metrics: Arc::clone(&metrics),
        shared: options.shared.clone(),
    };
    tasks.spawn(webhooks::serve(listener, tls.clone(), surroundings));
    let reach = environment.reach(flags.text("webhook-url"));
    tasks.spawn(keep_webhooks(
        client.clone(),
        environment.clone(),
        reach,
        tls,
        Arc::clone(&state.webhooks_ready),
        Arc::clone(&clock),
    ));

    let client_of_gates = client.clone();
    let options = async {
        settle_gates(&client_of_gates, &mut gates).await;
        Options {
            own_namespace: environment.namespace.clone(),
            secrets_namespace: environment.secrets_namespace.clone(),
            ..controllers(options, flags, &gates)
        }
    };
    lead(client, flags, environment, (metrics, clock), options, stop).await
}

/// The options of the controllers: those given, with the settings of flags and gates.
fn controllers(options: Options, flags: &Flags, gates: &FeatureGates) -> Options {
    let namespace = flags.text("namespace");
    Options {
        gates: gates.clone(),
        settings: settings(flags),
        namespace: (!namespace.is_empty()).then(|| namespace.to_owned()),
        retry: RetryDelays {
            first: flags.time("rate-limiter-base-delay"),
            longest: flags.time("rate-limiter-max-delay"),
        },
        ..options
    }
}

/// The values of the kinds' flags.
fn settings(flags: &Flags) -> Settings {
    flag_table::of_kinds()
        .map(|(name, _, _, _)| (name, flags.text(name).to_owned()))
        .collect()
}

/// client-go knows one lock alone since 1.24, and an error says so before anything is done. The empty text means that one.
fn refuse_other_locks(flags: &Flags) -> Result<(), ProcessError> {
    let lock = flags.text("leader-election-resource-lock");
    if !flags.is_set("enable-leader-election") || matches!(lock, "" | "leases") {
        return Ok(());
    }
    Err(ProcessError::Flag(format!(
        "--leader-election-resource-lock cannot be {lock}: leases is the only lock"
    )))
}

/// Whether a listener serves a path.
type Serves = fn(&str) -> bool;

async fn serve_endpoints(
    tasks: &mut JoinSet<()>,
    flags: &Flags,
    state: &endpoints::State,
) -> Result<(), ProcessError> {
    let served: [(&str, Serves); 2] = [
        ("metrics-addr", |path| path == "/metrics"),
        ("health-probe-addr", |path| path != "/metrics"),
    ];
    for (flag, serves) in served {
        let address = flags.text(flag);
        if address != "0" {
            let listener = endpoints::listen(address).await?;
            let state = state.clone();
            let answer = move |path: &str| endpoints::answer(path, &state).filter(|_| serves(path));
            tasks.spawn(endpoints::serve(listener, answer));
        }
    }
    Ok(())
}

/// Keeps certificates and configurations as they should be.
async fn keep_webhooks(
    client: Client,
    environment: Environment,
    reach: Reach,
    tls: webhooks::Tls,
    ready: Arc<AtomicBool>,
    clock: SharedClock,
) {
    let hosts = environment.hosts(&reach);
    let mut retry = FIRST_RETRY;
    loop {
        let done = async {
            let kept = secret::ensure(
                &client,
                &environment.namespace,
                &environment.secret,
                &hosts,
                clock.now(),
            )
            .await?;
            tls.set(kept.server_config()?);
            configurations::ensure(&client, &kept.ca_cert, &reach).await
        };
        let delay = match done.await {
            Ok(()) => {
                if !ready.swap(true, Ordering::AcqRel) {
                    tracing::info!("webhooks are ready");
                }
                retry = FIRST_RETRY;
                LOOK_AGAIN
            }
            Err(error) => {
                tracing::warn!(%error, "failed to look after the webhooks");
                let delay = retry;
                retry = (retry * 2).min(LOOK_AGAIN);
                delay
            }
        };
        tokio::time::sleep(delay).await;
    }
}

/// Runs the controllers while this process leads.
///
/// `options` is awaited once the definitions are there: the options depend on which there are.
async fn lead(
    client: Client,
    flags: &Flags,
    environment: &Environment,
    (metrics, clock): (Arc<Metrics>, SharedClock),
    options: impl Future<Output = Options>,
    stop: impl Future,
) -> Result<(), ProcessError> {
    let lease = flags.text("leader-election-id").to_owned();
    let master = |value| {
        metrics.set("leader_election_master_status", &[("name", &lease)], value);
        metrics.set(IS_LEADER, &[], value);
    };
    let moment = u64::try_from(clock.now().as_nanosecond() & i128::from(u64::MAX)).unwrap_or_default();
    let us = format!(
        "{}_{}",
        environment.hostname,
        Seed(moment).fork(&std::process::id().to_string()).random().uuid()
    );
    let mut election = flags.is_set("enable-leader-election").then(|| {
        let timings = Timings {
            lease: flags.time("leader-election-lease-duration"),
            renew_deadline: flags.time("leader-election-renew-deadline"),
            retry: flags.time("leader-election-retry-period"),
        };
        let namespace = match flags.text("leader-election-namespace") {
            "" => &environment.namespace,
            namespace => namespace,
        };
        Election::new(client.clone(), clock, namespace, &lease, &us, timings)
    });
    tokio::pin!(stop);
    master(0.0);
    let elected = async {
        let left_out = wait_for_definitions(&client).await;
        let mut options = Options {
            left_out,
            ..options.await
        };
        let without = kinds_without_definition(&client, &options).await;
        options.left_out.extend(without);
        count_workers(&options);
        if let Some(election) = &mut election {
            tracing::info!(lease, identity = us, "waiting for the lease");
            election.acquire().await;
        }
        options
    };
    let options = tokio::select! {
        biased;
        _ = &mut stop => return Ok(()),
        options = elected => options,
    };
    master(1.0);
    tracing::info!(identity = us, "leading");
    let (tell, told) = oneshot::channel::<()>();
    let manager = tokio::spawn(Manager::new(queued(client.clone()), options).run(told));
    let lost = {
        let held = async {
            match &mut election {
                Some(election) => election.hold().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            _ = &mut stop => false,
            () = held => true,
        }
    };
    if lost {
        // Whoever leads now must not find us at work: the passes that run are cut off.
        manager.abort();
        master(0.0);
        return Err(ProcessError::LeadershipLost);
    }
    // The manager may have ended by itself; there is nobody to tell then.
    let _ended = tell.send(());
    if let Err(error) = manager.await {
        tracing::warn!(%error, "the controllers did not end well");
    }
    if let Some(election) = &mut election {
        election.release().await;
    }
    Ok(())
}

/// Says in the metrics how many workers each controller has.
fn count_workers(options: &Options) {
    for workload in options.workloads() {
        let workers = u32::try_from(workload.workers(&options.settings)).unwrap_or(u32::MAX);
        options.metrics.set(
            "controller_runtime_max_concurrent_reconciles",
            &[("controller", workload.controller)],
            f64::from(workers),
        );
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::workloads::ALL;

    const PREDOWNLOAD: &str = "PreDownloadImageForInPlaceUpdate";

    #[rstest]
    #[case("", "", "kruise-webhook-service.kruise-system.svc")]
    #[case("", "10.0.0.1", "10.0.0.1")]
    #[case("https://host.example:9/x", "", "host.example")]
    #[case("https://[::1]:9", "", "::1")]
    fn hosts(#[case] url: &str, #[case] host: &str, #[case] expected: &str) {
        let environment =
            Environment::read(|name| (name == "WEBHOOK_HOST").then(|| host.to_owned())).unwrap();
        let reach = environment.reach(url);
        assert_eq!(environment.hosts(&reach), [expected]);
    }

    #[test]
    fn the_environment_has_openkruises_names() {
        let environment = Environment::read(|name| Some(format!("{}1", name.len()))).unwrap();
        assert_eq!((environment.namespace.as_str(), environment.port), ("131", 121));
        assert_eq!(environment.secrets_namespace, "231");
        assert!(Environment::read(|_| Some("x".to_owned())).is_err());
    }

    fn flags(line: &str) -> Flags {
        Flags::parse(line.split_whitespace().map(str::to_owned)).unwrap()
    }

    #[rstest]
    #[case("", true)]
    #[case("--leader-election-resource-lock=leases", true)]
    #[case("--leader-election-resource-lock=", true)]
    #[case("--leader-election-resource-lock=configmaps", false)]
    #[case("--leader-election-resource-lock=configmapsleases", false)]
    #[case(
        "--leader-election-resource-lock=configmaps --enable-leader-election=false",
        true
    )]
    fn locks(#[case] line: &str, #[case] taken: bool) {
        assert_eq!(refuse_other_locks(&flags(line)).is_ok(), taken);
    }

    #[test]
    fn flags_steer_the_controllers() {
        let of = |line: &str| {
            let flags = flags(line);
            let gates = FeatureGates::parse(flags.text("feature-gates")).unwrap();
            let options = controllers(Options::default(), &flags, &gates);
            (
                ALL.iter()
                    .find(|workload| workload.name == "cloneset")
                    .map_or(0, |workload| workload.workers(&options.settings)),
                options.namespace,
                options.gates.is_on(PREDOWNLOAD),
                options.retry,
            )
        };
        let retry = RetryDelays::default();
        assert_eq!(of(""), (3, None, false, retry));
        assert_eq!(of("--cloneset-workers=0"), (1, None, false, retry));
        assert_eq!(of("--namespace=a"), (3, Some("a".to_owned()), false, retry));
        let gate = "--feature-gates=PreDownloadImageForInPlaceUpdate=true";
        assert_eq!(of(gate), (3, None, true, retry));
        let first = Duration::from_secs(1);
        let longest = Duration::from_secs(60);
        let delays = "--rate-limiter-base-delay=1s --rate-limiter-max-delay=1m";
        assert_eq!(of(delays), (3, None, false, RetryDelays { first, longest }));
    }
}

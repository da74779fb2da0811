//! `kube-webhook-certgen`: the program that the charts of ingress-nginx, kube-prometheus-stack and others run in Jobs. `create`
//! keeps a webhook's certificates in a Secret, `patch` writes the authority into webhook configurations and an `APIService`.
//!
//! Flags, keys of the Secret and the order of requests are those of v1.6; keys are Ed25519 by the pod's seed, not P-256.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use client_kit::{ObjectClient, Random, SharedClock};
use machinery::types::rfc3339;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rcgen::{KeyUsagePurpose, date_time_ymd};
use shared_json::{Value, json};

use super::pipe::Output;

/// The image's name without registry and tag, and its program's.
pub(super) const NAME: &str = "kube-webhook-certgen";

/// An Ed25519 key as PKCS #8 has it, without its 32 bytes.
const PKCS8_ED25519: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];
/// For so many years a certificate is made.
const YEARS: i32 = 100;

/// One run of the program.
pub(super) struct Certgen {
    pub(super) objects: ObjectClient,
    pub(super) clock: SharedClock,
    pub(super) random: Random,
    pub(super) logs: Output,
}

/// Certificates and key in PEM.
struct Certificates {
    ca: String,
    cert: String,
    key: String,
}

/// A key by the seed.
fn key_of(random: &mut Random) -> Result<KeyPair, rcgen::Error> {
    let mut secret = [0; 32];
    random.fill(&mut secret);
    let der = [&PKCS8_ED25519[..], &secret[..]].concat();
    KeyPair::try_from(der)
}

/// A certificate for `localhost` that its own key has signed, and that key, in PEM.
pub(super) fn localhost(random: &mut Random) -> Result<(String, String), rcgen::Error> {
    let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
    let key = key_of(random)?;
    let certificate = CertificateParams::new(names)?.self_signed(&key)?;
    Ok((certificate.pem(), key.serialize_pem()))
}

impl Certgen {
    /// Runs it; the exit code. An error is the last line of its log.
    pub(super) async fn run(mut self, arguments: &[String]) -> i32 {
        let done = match arguments.first().map(String::as_str) {
            Some("create") => self.create(&Flags::read(arguments)).await,
            Some("patch") => self.patch(&Flags::read(arguments)).await,
            Some("version") => Ok(()),
            Some(other) => Err(format!("unknown command \"{other}\" for \"{NAME}\"")),
            None => Err("a command is missing: create or patch".to_owned()),
        };
        match done {
            Ok(()) => 0,
            Err(why) => {
                self.log("fatal", &why);
                1
            }
        }
    }

    fn log(&self, level: &str, message: &str) {
        let time = rfc3339(self.clock.now_seconds());
        let line = json!({"level": level, "msg": message, "time": time});
        self.logs.write(format!("{line}\n").as_bytes());
    }

    /// Sends a request; none if its object does not exist.
    async fn ask(&self, method: &str, path: &str, body: Value) -> Result<Option<Value>, String> {
        let request = http::Request::builder()
            .method(method)
            .uri(path)
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(body)
            .map_err(|error| error.to_string())?;
        match self.objects.request(request).await {
            Ok(object) => Ok(Some(Value::clone(&object))),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    /// The authority that the Secret holds, in base64; none if there is no Secret.
    async fn authority(&self, flags: &Flags<'_>) -> Result<Option<String>, String> {
        let (namespace, name) = (flags.required("namespace")?, flags.required("secret-name")?);
        let path = format!("/api/v1/namespaces/{namespace}/secrets/{name}");
        let Some(secret) = self.ask("GET", &path, Value::Null).await? else {
            self.log("info", "no secret found");
            return Ok(None);
        };
        match secret["data"]["ca"].as_str() {
            Some(ca) => Ok(Some(ca.to_owned())),
            None => Err("got secret, but it did not contain a 'ca' key".to_owned()),
        }
    }

    async fn create(&mut self, flags: &Flags<'_>) -> Result<(), String> {
        let (host, namespace) = (flags.required("host")?, flags.required("namespace")?);
        if self.authority(flags).await?.is_some() {
            self.log("info", "secret already exists");
            return Ok(());
        }
        self.log("info", "creating new secret");
        let made = self.certificates(host).map_err(|error| error.to_string())?;
        let mut data = BTreeMap::new();
        data.insert("ca", STANDARD.encode(made.ca));
        data.insert(
            flags.text("cert-name").unwrap_or("cert"),
            STANDARD.encode(made.cert),
        );
        data.insert(flags.text("key-name").unwrap_or("key"), STANDARD.encode(made.key));
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": flags.required("secret-name")?},
            "data": data,
        });
        let path = format!("/api/v1/namespaces/{namespace}/secrets");
        match self.ask("POST", &path, secret).await {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err("failed creating secret: the namespace is not there".to_owned()),
            Err(error) => Err(format!("failed creating secret: {error}")),
        }
    }

    async fn patch(&self, flags: &Flags<'_>) -> Result<(), String> {
        let (validating, mutating) = (flags.is_on("patch-validating"), flags.is_on("patch-mutating"));
        let service = flags.text("apiservice-name").filter(|name| !name.is_empty());
        if !validating && !mutating && service.is_none() {
            return Err(
                "patch-validating=false, patch-mutating=false. You must patch at least one kind of webhook, \
                 otherwise this command is a no-op"
                    .to_owned(),
            );
        }
        // The real program knows `Ignore` and does nothing with it.
        let policy = match flags.text("patch-failure-policy") {
            None | Some("" | "Ignore") => None,
            Some("Fail") => Some("Fail"),
            Some(other) => return Err(format!("patch-failure-policy {other} is not valid")),
        };
        let Some(ca) = self.authority(flags).await? else {
            let (name, namespace) = (flags.required("secret-name")?, flags.required("namespace")?);
            return Err(format!("no secret with '{name}' in '{namespace}'"));
        };
        if let Some(name) = service {
            self.log("info", &format!("patching APIService \"{name}\""));
            let path = format!("/apis/apiregistration.k8s.io/v1/apiservices/{name}");
            self.rewrite(
                &path,
                &format!("failed getting APIService \"{name}\""),
                |object| {
                    object["spec"]["caBundle"] = Value::from(ca.as_str());
                    object["spec"]["insecureSkipTLSVerify"] = Value::Bool(false);
                },
            )
            .await?;
        }
        let name = flags.text("webhook-name").unwrap_or_default();
        for (wanted, kind) in [(validating, "validating"), (mutating, "mutating")] {
            if !wanted {
                continue;
            }
            let path = format!("/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations/{name}");
            self.rewrite(&path, &format!("failed getting {kind} webhook"), |object| {
                let webhooks = object["webhooks"].as_array_mut();
                for webhook in webhooks.into_iter().flatten() {
                    webhook["clientConfig"]["caBundle"] = Value::from(ca.as_str());
                    if let Some(policy) = policy {
                        webhook["failurePolicy"] = Value::from(policy);
                    }
                }
            })
            .await?;
        }
        self.log("info", "Patched hook(s)");
        Ok(())
    }

    /// Reads an object, changes it and writes it.
    async fn rewrite(
        &self,
        path: &str,
        missing: &str,
        change: impl FnOnce(&mut Value),
    ) -> Result<(), String> {
        let mut object = self
            .ask("GET", path, Value::Null)
            .await?
            .ok_or_else(|| missing.to_owned())?;
        change(&mut object);
        self.ask("PUT", path, object).await?;
        Ok(())
    }

    fn key(&mut self) -> Result<KeyPair, rcgen::Error> {
        key_of(&mut self.random)
    }

    fn certificates(&mut self, host: &str) -> Result<Certificates, rcgen::Error> {
        let now = self.clock.now_seconds();
        let day = now.to_zoned(jiff::tz::TimeZone::UTC).date();
        // Every year has every day up to the 28th.
        let (year, month) = (i32::from(day.year()), day.month().unsigned_abs());
        let until = date_time_ymd(year + YEARS, month, day.day().unsigned_abs().min(28));
        let since = day.yesterday().unwrap_or(day);
        let since = date_time_ymd(
            i32::from(since.year()),
            since.month().unsigned_abs(),
            since.day().unsigned_abs(),
        );
        let parameters = |hosts: Vec<String>, organization: &str| {
            let mut made = CertificateParams::new(hosts)?;
            made.distinguished_name = rcgen::DistinguishedName::new();
            made.distinguished_name
                .push(DnType::OrganizationName, organization);
            made.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
            (made.not_before, made.not_after) = (since, until);
            Ok::<_, rcgen::Error>(made)
        };
        let mut root = parameters(Vec::new(), "nil1")?;
        root.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        root.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let root_key = self.key()?;
        let ca = root.self_signed(&root_key)?.pem();
        let mut leaf = parameters(host.split(',').map(str::to_owned).collect(), "nil2")?;
        leaf.key_usages = vec![
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        let key = self.key()?;
        let cert = leaf
            .signed_by(&key, &Issuer::from_params(&root, &root_key))?
            .pem();
        Ok(Certificates {
            ca,
            cert,
            key: key.serialize_pem(),
        })
    }
}

/// The flags of a command line, as Go's `pflag` reads them.
struct Flags<'a>(BTreeMap<&'a str, &'a str>);

impl<'a> Flags<'a> {
    fn read(arguments: &'a [String]) -> Self {
        let mut flags = BTreeMap::new();
        let mut words = arguments.iter().map(String::as_str).peekable();
        while let Some(word) = words.next() {
            let Some(flag) = word.strip_prefix("--") else {
                continue;
            };
            let (name, value) = match flag.split_once('=') {
                Some((name, value)) => (name, value),
                // A switch takes the next word only with `=`.
                None if flag.starts_with("patch-mutating") || flag.starts_with("patch-validating") => {
                    (flag, "true")
                }
                None => (flag, words.next().unwrap_or_default()),
            };
            flags.insert(name, value);
        }
        Self(flags)
    }

    fn text(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).copied()
    }

    fn required(&self, name: &str) -> Result<&'a str, String> {
        self.text(name)
            .ok_or_else(|| format!("required flag(s) \"{name}\" not set"))
    }

    /// A switch that is on by default.
    fn is_on(&self, name: &str) -> bool {
        !matches!(
            self.text(name),
            Some("false" | "FALSE" | "False" | "f" | "F" | "0")
        )
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("create --host=a,b --namespace ns", "host", Some("a,b"))]
    #[case("create --host=a,b --namespace ns", "namespace", Some("ns"))]
    #[case("patch --patch-mutating --namespace ns", "namespace", Some("ns"))]
    #[case("patch --secret-name=", "secret-name", Some(""))]
    #[case("patch", "secret-name", None)]
    fn reads_flags(#[case] line: &str, #[case] name: &str, #[case] expected: Option<&str>) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        assert_eq!(Flags::read(&words).text(name), expected);
    }
}

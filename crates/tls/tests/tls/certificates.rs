//! Authorities, certificates and their files, made when the test runs.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore};
use tls::{ClientCertificates, KeyFiles};

/// A directory that is removed with it.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Scratch {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("zerohop-tls-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Scratch(path)
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).unwrap();
    }
}

pub struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A certificate and its key, in PEM.
pub struct Certified {
    pub certificate: rcgen::Certificate,
    pub key: KeyPair,
}

impl Authority {
    pub fn new() -> Authority {
        let mut parameters = CertificateParams::new(Vec::new()).unwrap();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Authority(CertifiedIssuer::self_signed(parameters, KeyPair::generate().unwrap()).unwrap())
    }

    pub fn pem(&self) -> String {
        self.0.pem()
    }

    pub fn certify(&self, change: impl FnOnce(&mut CertificateParams)) -> Certified {
        let mut parameters = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        Certified { certificate: parameters.signed_by(&key, &self.0).unwrap(), key }
    }

    /// What a client is configured with that trusts this authority and shows `certified`.
    pub fn client(&self, certified: Option<&Certified>) -> Arc<ClientConfig> {
        let mut roots = RootCertStore::empty();
        roots.add(self.0.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots);
        Arc::new(match certified {
            None => builder.with_no_client_auth(),
            Some(Certified { certificate, key }) => {
                let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
                builder.with_client_auth_cert(vec![certificate.der().clone()], key).unwrap()
            }
        })
    }
}

impl Certified {
    /// Its files, for a server whose clients have certificates of `authority`.
    pub fn files(&self, scratch: &Scratch, authority: &Authority, clients: ClientCertificates) -> KeyFiles {
        KeyFiles {
            certificate: scratch.write("node.crt", &self.certificate.pem()),
            key: scratch.write("node.key", &self.key.serialize_pem()),
            authorities: Some(scratch.write("ca.crt", &authority.pem())),
            clients,
        }
    }
}

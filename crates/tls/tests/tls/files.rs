//! Files that cannot be used are named with what to do, and files that changed count for who comes next.

use tls::{ClientCertificates, KeyFiles, Keys};

use crate::certificates::{Authority, Scratch};
use crate::rig::{NOW_UNIX_S, Rig};

fn refused(files: &KeyFiles) -> (&'static str, String) {
    let error = Keys::read(files, NOW_UNIX_S).unwrap_err();
    (error.which.setting(), error.reason)
}

#[test]
fn every_fault_names_its_setting_and_the_way_out() {
    let (authority, scratch) = (Authority::new(), Scratch::new());
    let node = authority.certify(|_| {});
    let good = node.files(&scratch, &authority, ClientCertificates::Yes);
    assert!(Keys::read(&good, NOW_UNIX_S).is_ok());
    let with = |change: &dyn Fn(&mut KeyFiles)| {
        let mut files = good.clone();
        change(&mut files);
        refused(&files)
    };
    let (nowhere, text) = (scratch.0.join("nowhere"), scratch.write("text", "no PEM"));
    let other = authority.certify(|_| {});
    let other_key = scratch.write("other.key", &other.key.serialize_pem());
    let expired = authority.certify(|parameters| parameters.not_after = rcgen::date_time_ymd(2026, 1, 2));
    let expired = scratch.write("expired.crt", &expired.certificate.pem());
    let early = authority.certify(|parameters| parameters.not_before = rcgen::date_time_ymd(2040, 1, 2));
    let early = scratch.write("early.crt", &early.certificate.pem());
    let broken = scratch.write("broken.crt", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    for ((setting, reason), expected, words) in [
        (with(&|files| files.certificate = nowhere.clone()), "tls-cert-file", "No such file"),
        (with(&|files| files.certificate = text.clone()), "tls-cert-file", "no certificate in it; give a PEM file"),
        (with(&|files| files.certificate = broken.clone()), "tls-cert-file", "no X.509 certificate"),
        (with(&|files| files.certificate = expired.clone()), "tls-cert-file", "expired at 2026-01-02"),
        (with(&|files| files.certificate = early.clone()), "tls-cert-file", "valid from 2040-01-02"),
        (with(&|files| files.key = nowhere.clone()), "tls-key-file", "No such file"),
        (with(&|files| files.key = text.clone()), "tls-key-file", "no private key in it; give a PEM file"),
        (with(&|files| files.key = other_key.clone()), "tls-key-file", "does not belong to the certificate"),
        (with(&|files| files.authorities = Some(text.clone())), "tls-ca-cert-file", "no certificate in it"),
        (with(&|files| files.authorities = None), "tls-auth-clients", "or --tls-auth-clients no"),
    ] {
        assert!(setting == expected && reason.contains(words), "{setting}: {reason} ({words})");
    }
}

#[test]
fn files_read_again_count_for_who_comes_next_and_faults_change_nothing() {
    let mut rig = Rig::new(ClientCertificates::No);
    let mut client = rig.connected();
    let other = Authority::new();
    let mut files = other.certify(|_| {}).files(&rig.scratch, &other, ClientCertificates::No);
    let key = std::mem::replace(&mut files.key, rig.scratch.0.join("nowhere"));
    assert!(rig.keys.read_again(&files, NOW_UNIX_S).is_err());
    let config = rig.keys.current();
    files.key = key;
    rig.keys.read_again(&files, NOW_UNIX_S).unwrap();
    assert!(!std::sync::Arc::ptr_eq(&config, &rig.keys.current()));
    client.say(b"still here");
    rig.carry(&mut client, 4096);
    assert_eq!(client.read, b"still here");
    assert!(!rig.is_closed);
}

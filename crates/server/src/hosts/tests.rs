//! Lists of hosts, and who finds himself in them.

use wire::trust::Token;

use super::*;

fn places(hosts: &[(&str, u16)]) -> Vec<Place> {
    hosts.iter().map(|(host, port)| ((*host).to_owned(), *port)).collect()
}

#[test]
fn files_have_a_host_a_line() {
    let text = "# the cluster\nn1\n n2:7000 # the second\n\n[::1]:7001\nfe80::1\n";
    let expected = places(&[("n1", 6379), ("n2", 7000), ("[::1]", 7001), ("fe80::1", 6379)]);
    assert_eq!(parse(text, 6379), Ok(expected));
    for (text, word) in [("", "no host"), ("a\nb\na:6379", "line 3"), ("a:x", "line 1: x is no port")] {
        let told = parse(text, 6379).unwrap_err();
        assert!(told.contains(word), "{told}");
    }
}

#[test]
fn a_node_finds_itself_by_name_address_and_port() {
    let hosts = places(&[("n1.site", 1), ("n2", 1), ("10.0.0.3", 1), ("127.0.0.1", 1), ("127.0.0.1", 2)]);
    let own =
        |names: &[&str], port| own_of(&hosts, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), port);
    assert_eq!(own(&["n1"], 1), Ok(0));
    assert_eq!(own(&["n2.site"], 1), Ok(1));
    assert_eq!(own(&["n2"], 9), Ok(1), "its port is told apart");
    assert_eq!(own(&["n3", "10.0.0.3"], 1), Ok(2));
    assert_eq!(own(&["127.0.0.1"], 2), Ok(4));
    assert!(own(&["n"], 1).unwrap_err().contains("none of its hosts is this one (n)"));
    assert!(own(&["127.0.0.1"], 3).unwrap_err().contains("none of them has port 3"));
    assert!(own(&["n1", "n2"], 1).unwrap_err().contains("several of its hosts"));
}

#[test]
fn lists_of_slurm_are_unfolded_in_their_order() {
    let names = |list| expand(list).map(|names| names.join(" "));
    assert_eq!(names("a"), Ok("a".to_owned()));
    assert_eq!(names("node[008-010,2],gpu1"), Ok("node008 node009 node010 node2 gpu1".to_owned()));
    assert_eq!(names("r[1-2]n[01-02]x,b"), Ok("r1n01x r1n02x r2n01x r2n02x b".to_owned()));
    for list in ["", "a,,b", "a[1-2", "a]1", "a[2-1]", "a[x]", "a[1-99999999]", "a[1-9999]b[1-9999]"] {
        assert!(expand(list).is_err(), "{list}");
    }
}

fn settled(own: &'static str) -> Result<NodeConfig, Fault> {
    let mut config = NodeConfig::default();
    config.cluster.hosts = Some("slurm".to_owned());
    config.cluster.token = Some(Token::new([1; 16]));
    let variable = match own {
        "n1" => |name: &str| Some(if name == "SLURMD_NODENAME" { "n1" } else { "n[1-3]" }.to_owned()),
        "n3" => |name: &str| Some(if name == "SLURMD_NODENAME" { "n3" } else { "n[1-3]" }.to_owned()),
        "n4" => |name: &str| Some(if name == "SLURMD_NODENAME" { "n4" } else { "n[1-3]" }.to_owned()),
        _ => |_: &str| None,
    };
    settle(&mut config, &Surroundings { host_name: "elsewhere".to_owned(), variable }).map(|()| config)
}

#[test]
fn the_first_host_founds_and_the_others_join() {
    let first = settled("n1").unwrap();
    assert!(first.cluster.is_new && first.cluster.join.is_empty() && first.announce_host == "n1");
    let last = settled("n3").unwrap();
    assert!(!last.cluster.is_new && last.announce_host == "n3");
    assert_eq!(last.cluster.join, ["n1:6379", "n2:6379"]);
    let refused = |own| settled(own).map(|_| ()).unwrap_err().1;
    assert!(refused("n4").contains("does not name this node, n4"));
    assert!(refused("").contains("SLURM_JOB_NODELIST is not set"));
}

#[test]
fn what_does_not_go_together_is_refused() {
    let told = |change: fn(&mut NodeConfig)| {
        let mut config = NodeConfig::default();
        config.cluster.hosts = Some("/nowhere/hosts".to_owned());
        config.cluster.token = Some(Token::new([1; 16]));
        change(&mut config);
        settle(&mut config, &Surroundings { host_name: "a".to_owned(), variable: |_| None }).unwrap_err()
    };
    assert_eq!(told(|config| config.cluster.is_new = true).0, "hosts");
    assert_eq!(told(|config| config.cluster.token = None).0, "token-file");
    assert!(told(|_| ()).1.contains("No such file"));
}

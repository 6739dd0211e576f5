use expect_test::expect;

use super::*;
use crate::config::BootstrapConfig;
use crate::graph::Edge;
use crate::topology::declared;

fn drawing(groups: &[usize], n: i32) -> Drawing {
    let names = groups
        .iter()
        .enumerate()
        .flat_map(|(group, count)| (0..*count).map(move |peer| format!("peers-{group}-{peer}")));
    let mut peers: Vec<String> = names.collect();
    let gone = peers.remove(1);
    let dials = declared(&BootstrapConfig { degree: n, ..BootstrapConfig::default() }, &peers);
    let mut observed: Edges = dials.iter().skip(1).filter_map(Dial::edge).collect();
    observed.extend(Edge::new(&peers[0], &peers[peers.len() / 2]));
    let unready =
        UnreadyPeer { name: gone, reason: "RpcTimeout".into(), message: "no answer within 2000 ms".into() };
    Drawing::new("demo", &peers, &[unready], &dials, &observed)
}

#[test]
fn json_has_everything() {
    let text = drawing(&[5], 1).json();
    expect![[r#"
        {
          "network": "demo",
          "counts": {
            "peers": 5,
            "ready": 4,
            "present": 3,
            "missing": 1,
            "surplus": 1,
            "components": 1
          },
          "peers": [
            {
              "name": "peers-0-0",
              "group": "peers-0",
              "ready": true
            },
            {
              "name": "peers-0-1",
              "group": "peers-0",
              "ready": false,
              "reason": "RpcTimeout"
            },
            {
              "name": "peers-0-2",
              "group": "peers-0",
              "ready": true
            },
            {
              "name": "peers-0-3",
              "group": "peers-0",
              "ready": true
            },
            {
              "name": "peers-0-4",
              "group": "peers-0",
              "ready": true
            }
          ],
          "edges": [
            {
              "from": "peers-0-0",
              "to": "peers-0-3",
              "state": "surplus"
            },
            {
              "from": "peers-0-2",
              "to": "peers-0-3",
              "state": "present"
            },
            {
              "from": "peers-0-3",
              "to": "peers-0-4",
              "state": "present"
            },
            {
              "from": "peers-0-4",
              "to": "peers-0-0",
              "state": "present"
            },
            {
              "from": "peers-0-0",
              "to": "peers-0-2",
              "state": "missing"
            }
          ]
        }"#]]
    .assert_eq(&text);
}

#[test]
fn dot_has_a_style_for_each_state() {
    expect![[r##"
        graph "demo" {
          layout=circo; node [shape=box]; label="4 of 5 peers answer; of the declared connections 3 are there and 1 are missing; 1 are not declared; 1 island";
          subgraph cluster_0 { label="peers-0";
            "peers-0-0";
            "peers-0-1" [style=dashed, label="peers-0-1\nRpcTimeout"];
            "peers-0-2";
            "peers-0-3";
          }
          subgraph cluster_1 { label="peers-1";
            "peers-1-0";
          }
          "peers-0-0" -- "peers-0-3" [style=dotted, color="#6b6b6b", tooltip=surplus];
          "peers-0-2" -- "peers-0-3" [style=solid];
          "peers-0-3" -- "peers-1-0" [style=solid];
          "peers-1-0" -- "peers-0-0" [style=solid];
          "peers-0-0" -- "peers-0-2" [style=dashed, color="#b3261e", tooltip=missing];
        }
    "##]].assert_eq(&drawing(&[4, 1], 1).dot());
}

#[test]
fn image_is_as_it_was_looked_at() {
    expect![[r##"
        <svg xmlns="http://www.w3.org/2000/svg" width="420" height="482" viewBox="0 0 420 482" role="img" aria-labelledby="title description">
        <title id="title">Network demo</title>
        <desc id="description">4 of 5 peers answer; of the declared connections 3 are there and 1 are missing; 1 are not declared; 1 island. Missing: peers-0-0 &gt; peers-0-2.</desc>
        <style>text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}.title{font-size:16px;font-weight:bold}.group{font-weight:bold;fill:#444}.arc{stroke:#8a8a8a;stroke-width:1.5}path{fill:none}.present{stroke:#1f5a93;stroke-width:1.4}.missing{stroke:#b3261e;stroke-width:2.2;stroke-dasharray:8 5}.surplus{stroke:#6b6b6b;stroke-width:1.8;stroke-dasharray:1 4;stroke-linecap:round}.ready{fill:#1f5a93;stroke:#1f5a93;stroke-width:2}.unready{fill:#fff;stroke:#b3261e;stroke-width:2;stroke-dasharray:3 2}</style>
        <rect width="100%" height="100%" fill="#fff"/>
        <text class="title" x="16" y="30">Network demo</text>
        <path class="surplus" d="M210.0 92.0Q177.7 191.5 145.3 291.0"><title>peers-0-0 - peers-0-3: surplus</title></path>
        <path class="present" d="M274.7 291.0Q210.0 291.0 145.3 291.0"><title>peers-0-2 - peers-0-3: present</title></path>
        <path class="present" d="M145.3 291.0Q125.4 229.5 105.4 168.0"><title>peers-0-3 - peers-0-4: present</title></path>
        <path class="present" d="M105.4 168.0Q157.7 130.0 210.0 92.0"><title>peers-0-4 - peers-0-0: present</title></path>
        <path class="missing" d="M210.0 92.0Q242.3 191.5 274.7 291.0"><title>peers-0-0 - peers-0-2: missing</title></path>
        <g><title>peers-0-0</title><circle class="ready" cx="210.0" cy="92.0" r="5"/><text x="210.0" y="78.0" text-anchor="middle">peers-0-0</text></g>
        <g><title>peers-0-1: RpcTimeout</title><circle class="unready" cx="314.6" cy="168.0" r="5"/><text x="326.0" y="166.4" text-anchor="start">peers-0-1</text></g>
        <g><title>peers-0-2</title><circle class="ready" cx="274.7" cy="291.0" r="5"/><text x="281.7" y="309.6" text-anchor="start">peers-0-2</text></g>
        <g><title>peers-0-3</title><circle class="ready" cx="145.3" cy="291.0" r="5"/><text x="138.3" y="309.6" text-anchor="end">peers-0-3</text></g>
        <g><title>peers-0-4</title><circle class="ready" cx="105.4" cy="168.0" r="5"/><text x="94.0" y="166.4" text-anchor="end">peers-0-4</text></g>
        <g transform="translate(16 372)"><line class="present" x1="0" y1="0" x2="40" y2="0"/><text x="52" y="4">declared and there: 3</text></g>
        <g transform="translate(16 394)"><line class="missing" x1="0" y1="0" x2="40" y2="0"/><text x="52" y="4">declared and missing: 1</text></g>
        <g transform="translate(16 416)"><line class="surplus" x1="0" y1="0" x2="40" y2="0"/><text x="52" y="4">there and not declared: 1</text></g>
        <g transform="translate(16 438)"><circle class="ready" cx="20" cy="0" r="5"/><text x="52" y="4">peer that answers: 4 (islands: 1)</text></g>
        <g transform="translate(16 460)"><circle class="unready" cx="20" cy="0" r="5"/><text x="52" y="4">peer that does not: 1</text></g>
        </svg>
    "##]].assert_eq(&drawing(&[5], 1).svg());
}

/// Writes the images of some networks into the folder that `PICTURES` names, to be looked at.
#[test]
fn images_of_all_sizes_are_within_their_borders() {
    for (name, drawing) in [
        ("none", Drawing::new("none", &[], &[], &[], &Edges::new())),
        ("four", drawing(&[5], 1)),
        ("twelve", drawing(&[8, 3, 1], 2)),
        ("sixty", drawing(&[60], 3)),
        ("groups", drawing(&[40, 15, 5], 2)),
    ] {
        let svg = drawing.svg();
        assert_eq!(svg.matches("<circle").count(), drawing.peers.len() + 2, "{name}");
        assert_eq!(svg.matches(" - ").count(), drawing.edges.len(), "{name}");
        let number = |text: &str| text.split('"').next().unwrap().parse::<f64>().unwrap();
        let width = number(svg.split("width=\"").nth(1).unwrap());
        let height = number(svg.split("height=\"").nth(1).unwrap());
        for (part, most) in [("cx=\"", width), ("cy=\"", height), (" y=\"", height)] {
            assert!(
                svg.split(part).skip(1).all(|rest| (0.0..=most).contains(&number(rest))),
                "{name}: {part}"
            );
        }
        if let Ok(folder) = std::env::var("PICTURES") {
            std::fs::write(format!("{folder}/{name}.svg"), svg).unwrap();
        }
    }
}

#[test]
fn names_stand_for_themselves() {
    let odd = "a<b>&\"'\\\u{1}-0".to_owned();
    let dials = [Dial { from: odd.clone(), to: "b-0".into() }];
    let drawing = Drawing::new("<x>", &[odd.clone(), "b-0".into()], &[], &dials, &Edges::new());
    let svg = drawing.svg();
    assert!(svg.contains("a&lt;b&gt;&amp;&quot;&#39;\\\u{fffd}-0") && !svg.contains("a<b"), "{svg}");
    assert!(drawing.dot().contains(r#""a<b>&\"'\\"#), "{}", drawing.dot());
    let json: serde_json::Value = serde_json::from_str(&drawing.json()).unwrap();
    assert_eq!(json["edges"][0]["from"], odd);
}

#[test]
fn connections_with_strangers_are_left_out() {
    let dials = [Dial { from: "a-0".into(), to: "x-0".into() }];
    let observed: Edges = Edge::new("a-0", "y-0").into_iter().collect();
    let drawing = Drawing::new("n", &["a-10".into(), "a-9".into(), "a-0".into()], &[], &dials, &observed);
    assert_eq!(drawing.edges, vec![]);
    assert_eq!(
        drawing.peers.iter().map(|peer| peer.name.as_str()).collect::<Vec<_>>(),
        ["a-0", "a-9", "a-10"]
    );
}

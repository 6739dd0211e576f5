//! For Graphviz. Line styles are the same as in the image.

use std::fmt::Write as _;

use super::{Drawing, EdgeState};

pub(super) fn render(drawing: &Drawing) -> String {
    let mut text = format!("graph {} {{\n", quoted(&drawing.network));
    // To write into a String cannot fail.
    let _ = writeln!(text, "  layout=circo; node [shape=box]; label={};", quoted(&drawing.summary()));
    for (place, (group, first, count)) in drawing.groups().into_iter().enumerate() {
        let _ = writeln!(text, "  subgraph cluster_{place} {{ label={};", quoted(group));
        for peer in drawing.peers.iter().skip(first).take(count) {
            let style = if peer.ready {
                String::new()
            } else {
                let label = format!("{}\n{}", peer.name, peer.reason);
                format!(" [style=dashed, label={}]", quoted(&label))
            };
            let _ = writeln!(text, "    {}{style};", quoted(&peer.name));
        }
        text.push_str("  }\n");
    }
    for edge in &drawing.edges {
        let style = match edge.state {
            EdgeState::Present => "style=solid",
            EdgeState::Missing => "style=dashed, color=\"#b3261e\", tooltip=missing",
            EdgeState::Surplus => "style=dotted, color=\"#6b6b6b\", tooltip=surplus",
        };
        let _ = writeln!(text, "  {} -- {} [{style}];", quoted(&edge.from), quoted(&edge.to));
    }
    text.push_str("}\n");
    text
}

/// Quoted, so that it stands for itself.
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

//! As an image. States are told by line styles as well as by colours; all is told in words, too.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::layout::{Layout, float};
use super::{Drawing, DrawnPeer, EdgeState};

const TOP: f64 = 56.0;
const LEGEND_LINE: f64 = 22.0;
const LEAST_WIDTH: f64 = 420.0;
/// How many missing connections are told in words.
const TOLD: usize = 20;

const STYLE: &str = "text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#1b1b1b}\
.title{font-size:16px;font-weight:bold}.group{font-weight:bold;fill:#444}\
.arc{stroke:#8a8a8a;stroke-width:1.5}\
path{fill:none}.present{stroke:#1f5a93;stroke-width:1.4}\
.missing{stroke:#b3261e;stroke-width:2.2;stroke-dasharray:8 5}\
.surplus{stroke:#6b6b6b;stroke-width:1.8;stroke-dasharray:1 4;stroke-linecap:round}\
.ready{fill:#1f5a93;stroke:#1f5a93;stroke-width:2}\
.unready{fill:#fff;stroke:#b3261e;stroke-width:2;stroke-dasharray:3 2}";

pub(super) fn render(drawing: &Drawing) -> String {
    let legend = legend(drawing);
    let layout = Layout::of(drawing, TOP, float(legend.len()) * LEGEND_LINE + 24.0, LEAST_WIDTH);
    let (width, height) = (layout.width, layout.height);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"title description\">\n\
         <title id=\"title\">Network {}</title>\n<desc id=\"description\">{}</desc>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n<text class=\"title\" x=\"16\" y=\"30\">Network {}</text>\n",
        escaped(&drawing.network),
        escaped(&description(drawing)),
        escaped(&drawing.network),
    );
    draw_groups(drawing, &layout, &mut text);
    draw_edges(drawing, &layout, &mut text);
    for (place, peer) in drawing.peers.iter().enumerate() {
        draw_peer(peer, place, &layout, &mut text);
    }
    let mut y = height - float(legend.len()) * LEGEND_LINE;
    for (sample, words) in legend {
        let _ = writeln!(
            text,
            "<g transform=\"translate(16 {y:.0})\">{sample}<text x=\"52\" y=\"4\">{}</text></g>",
            escaped(&words)
        );
        y += LEGEND_LINE;
    }
    text.push_str("</svg>\n");
    text
}

/// Samples of what there can be, each with words that say how much there is of it.
fn legend(drawing: &Drawing) -> Vec<(String, String)> {
    let line = |class: &str| format!("<line class=\"{class}\" x1=\"0\" y1=\"0\" x2=\"40\" y2=\"0\"/>");
    let circle = |class: &str| format!("<circle class=\"{class}\" cx=\"20\" cy=\"0\" r=\"5\"/>");
    let counts = &drawing.counts;
    vec![
        (line("present"), format!("declared and there: {}", counts.present)),
        (line("missing"), format!("declared and missing: {}", counts.missing)),
        (line("surplus"), format!("there and not declared: {}", counts.surplus)),
        (circle("ready"), format!("peer that answers: {} (islands: {})", counts.ready, counts.components)),
        (circle("unready"), format!("peer that does not: {}", counts.peers - counts.ready)),
    ]
}

fn description(drawing: &Drawing) -> String {
    let mut text = format!("{}.", drawing.summary());
    let missing: Vec<_> = drawing.edges.iter().filter(|edge| edge.state == EdgeState::Missing).collect();
    if !missing.is_empty() {
        let told: Vec<_> =
            missing.iter().take(TOLD).map(|edge| format!("{} > {}", edge.from, edge.to)).collect();
        let more = if missing.len() > TOLD { ", and others" } else { "" };
        let _ = write!(text, " Missing: {}{more}.", told.join(", "));
    }
    text
}

fn draw_groups(drawing: &Drawing, layout: &Layout, text: &mut String) {
    let groups = drawing.groups();
    if groups.len() < 2 {
        return;
    }
    for (group, first, count) in groups {
        let (from, to, radius, large, name, turn) = layout.group(first, count);
        let _ = writeln!(
            text,
            "<path class=\"arc\" d=\"M{:.1} {:.1}A{radius:.1} {radius:.1} 0 {} 1 {:.1} {:.1}\"/>\
             <text class=\"group\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\">{}</text>",
            from.x,
            from.y,
            u8::from(large),
            to.x,
            to.y,
            name.x,
            name.y + 4.0 + 4.0 * turn.sin(),
            anchor(turn),
            escaped(group),
        );
    }
}

/// On which side of a place words are, so that they lead away from the middle.
fn anchor(turn: f64) -> &'static str {
    match turn.cos() {
        right if right > 0.2 => "start",
        left if left < -0.2 => "end",
        _ => "middle",
    }
}

fn draw_edges(drawing: &Drawing, layout: &Layout, text: &mut String) {
    let places: BTreeMap<&str, usize> =
        drawing.peers.iter().enumerate().map(|(place, peer)| (peer.name.as_str(), place)).collect();
    for edge in &drawing.edges {
        let (Some(from), Some(to)) = (places.get(edge.from.as_str()), places.get(edge.to.as_str())) else {
            continue;
        };
        let bend = layout.bend(*from, *to);
        let (from, to) = (layout.peer(*from), layout.peer(*to));
        let class = match edge.state {
            EdgeState::Present => "present",
            EdgeState::Missing => "missing",
            EdgeState::Surplus => "surplus",
        };
        let _ = writeln!(
            text,
            "<path class=\"{class}\" d=\"M{:.1} {:.1}Q{:.1} {:.1} {:.1} {:.1}\"><title>{} - {}: {class}</title></path>",
            from.x,
            from.y,
            bend.x,
            bend.y,
            to.x,
            to.y,
            escaped(&edge.from),
            escaped(&edge.to),
        );
    }
}

fn draw_peer(peer: &DrawnPeer, place: usize, layout: &Layout, text: &mut String) {
    let (at, name, turn) = (layout.peer(place), layout.name(place), layout.turn(place));
    let class = if peer.ready { "ready" } else { "unready" };
    let told = if peer.ready { peer.name.clone() } else { format!("{}: {}", peer.name, peer.reason) };
    let words = if layout.level {
        let drop = 4.0 + 6.0 * turn.sin();
        format!("x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{}\"", name.x, name.y + drop, anchor(turn))
    } else {
        // Names on the left are turned once more, so that none is upside down.
        let (turned, side) = if turn.cos() < -1e-9 { (180.0, "end") } else { (0.0, "start") };
        let degrees = turn.to_degrees() + turned;
        format!(
            "transform=\"translate({:.1} {:.1}) rotate({degrees:.1})\" dy=\"4\" text-anchor=\"{side}\"",
            name.x, name.y
        )
    };
    let _ = writeln!(
        text,
        "<g><title>{}</title><circle class=\"{class}\" cx=\"{:.1}\" cy=\"{:.1}\" r=\"5\"/><text {words}>{}</text></g>",
        escaped(&told),
        at.x,
        at.y,
        escaped(&peer.name),
    );
}

/// Text that stands for itself. What XML cannot hold at all is replaced.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

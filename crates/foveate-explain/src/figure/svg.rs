//! Sheets as SVG.

use std::fmt::Write;

use foveate_core::Image;

use super::{Anchor, Drawing, Ink, Shape};
use crate::text::{base64, escape, joined};

/// How an SVG gets its colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dress {
    /// From the page that it is part of.
    Page,
    /// From a style sheet of its own, light or dark as the viewer prefers.
    Alone,
    /// On white paper, each shape with its colour, for programs that read no style sheets.
    Plain,
}

/// A drawing without pictures as an SVG file of its own, on white paper.
pub fn plain_svg(drawing: &Drawing, title: &str) -> String {
    svg(drawing, title, Dress::Plain, &|_| Vec::new()) + "\n"
}

/// `drawing` as SVG; `title` is what a screen reader says; `png` encodes the pictures.
pub fn svg(drawing: &Drawing, title: &str, dress: Dress, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
    let Drawing { width, height, shapes } = drawing;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"",
        number(*width),
        number(*height),
        escape(title)
    );
    if dress == Dress::Alone {
        write!(out, " width=\"{}\" height=\"{}\">", number(*width), number(*height)).expect(ENDLESS);
        write!(out, "<style>{}</style>", style_alone()).expect(ENDLESS);
        out.push_str("<rect class=\"f-paper\" width=\"100%\" height=\"100%\"/>");
    } else if dress == Dress::Plain {
        out.push_str(" font-family=\"sans-serif\" fill=\"none\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
    } else {
        out.push('>');
    }
    for shape in shapes {
        one(&mut out, shape, dress, png);
        if dress == Dress::Plain {
            out.push('\n');
        }
    }
    out.push_str("</svg>");
    out
}

const ENDLESS: &str = "a String takes everything";

/// How a shape gets its colour: `attribute` is `fill` or `stroke`, `more` another class.
fn paint(ink: Ink, attribute: &str, more: &str, dress: Dress) -> String {
    match (ink, dress) {
        (Ink::Line(_), _) | (_, Dress::Plain) => format!("{attribute}=\"{}\"", hex(ink.light())),
        _ => format!("class=\"{}-{}{more}\"", &attribute[..1], ink.name()),
    }
}

fn one(out: &mut String, shape: &Shape, dress: Dress, png: &dyn Fn(Image<'_>) -> Vec<u8>) {
    match shape {
        Shape::Rect { place: [x, y, width, height], ink, opacity } => write!(
            out,
            "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}{}/>",
            number(*x),
            number(*y),
            number(width.max(0.0)),
            number(height.max(0.0)),
            paint(*ink, "fill", "", dress),
            see_through("fill-opacity", *opacity)
        ),
        Shape::Line { points, ink, width, opacity } => write!(
            out,
            "<polyline points=\"{}\" {} stroke-width=\"{}\"{}/>",
            path(points),
            paint(*ink, "stroke", "", dress),
            number(*width),
            see_through("stroke-opacity", *opacity)
        ),
        Shape::Area { points, ink, opacity } => write!(
            out,
            "<polygon points=\"{}\" {}{}/>",
            path(points),
            paint(*ink, "fill", "", dress),
            see_through("fill-opacity", *opacity)
        ),
        Shape::Dot { at: (x, y), radius, ink } => write!(
            out,
            "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>",
            number(*x),
            number(*y),
            number(*radius),
            paint(*ink, "fill", "", dress)
        ),
        Shape::Text { at: (x, y), size, anchor, ink, text, tick } => write!(
            out,
            "<text x=\"{}\" y=\"{}\" font-size=\"{}\" {}{}>{}</text>",
            number(*x),
            number(*y),
            number(*size),
            paint(*ink, "fill", if *tick { " tick" } else { "" }, dress),
            match anchor {
                Anchor::Start => "",
                Anchor::Middle => " text-anchor=\"middle\"",
                Anchor::End => " text-anchor=\"end\"",
            },
            escape(text)
        ),
        Shape::Picture { place: [x, y, width, height], image } => write!(
            out,
            "<image x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" preserveAspectRatio=\"none\" class=\"px\" \
             href=\"data:image/png;base64,{}\"/>",
            number(*x),
            number(*y),
            number(*width),
            number(*height),
            base64(&png(image.as_image()))
        ),
    }
    .expect(ENDLESS);
}

fn see_through(name: &str, opacity: f64) -> String {
    if opacity >= 1.0 { String::new() } else { format!(" {name}=\"{}\"", number(opacity)) }
}

fn path(points: &[(f64, f64)]) -> String {
    let each: Vec<String> = points.iter().map(|(x, y)| format!("{},{}", number(*x), number(*y))).collect();
    each.join(" ")
}

/// With two decimals, and none where they are zero.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

/// The rules that give shapes their colours, from variables of the page.
pub fn style_rules() -> String {
    let mut rules = String::from(
        "svg text{font-family:system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;font-variant-numeric:tabular-nums}\
         svg polyline{fill:none;stroke-linejoin:round;stroke-linecap:round}svg .px{image-rendering:pixelated}",
    );
    for ink in Ink::ALL {
        let name = ink.name();
        write!(rules, ".f-{name}{{fill:var(--{name})}}.s-{name}{{stroke:var(--{name})}}").expect(ENDLESS);
    }
    rules
}

/// The variables of one theme.
pub fn variables(colour: fn(Ink) -> [u8; 3]) -> String {
    joined(Ink::ALL.iter().map(|&ink| format!("--{}:{};", ink.name(), hex(colour(ink)))))
}

fn hex([r, g, b]: [u8; 3]) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn style_alone() -> String {
    format!(
        ":root{{{}}}@media(prefers-color-scheme:dark){{:root{{{}}}}}{}",
        variables(Ink::light),
        variables(Ink::dark),
        style_rules()
    )
}

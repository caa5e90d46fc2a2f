//! The report as one HTML page that needs nothing else: no network, no other file.

mod player;

use std::borrow::Cow;

use foveate_core::Image;

use crate::figure::{Dress, Figure, Ink, style_rules, svg, variables};
use crate::text::{base64, escape, joined};
pub use player::{FilmEffects, PageFilm, player_data};

const TEMPLATE: &str = include_str!("template.html");
const PLAIN_TEMPLATE: &str = include_str!("plain.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");

/// What the page says and shows, from top to bottom.
pub struct ReportPage<'a> {
    /// What it is about, in a line.
    pub title: String,
    /// Which weights, world and seed.
    pub subtitle: String,
    /// Big numbers for whoever has ten seconds.
    pub tiles: Vec<Tile>,
    /// What a person should know after a minute, a sentence each.
    pub summary: Vec<String>,
    /// The episode.
    pub film: PageFilm<'a>,
    /// What the agent's part of the film shows.
    pub seen: &'a str,
    /// Names of the columns of that part, from the left; empty if it has none.
    pub columns: Vec<String>,
    /// The film's data, from [`player_data`].
    pub data: String,
    /// The rest.
    pub sections: Vec<Section>,
    /// What stands at the foot: how it was made, as sentences.
    pub notes: Vec<String>,
}

/// A big number.
pub struct Tile {
    /// The number.
    pub value: String,
    /// What it is.
    pub name: String,
    /// What to compare it with.
    pub note: String,
    /// Whether it is good, bad, or neither.
    pub mood: Mood,
}

/// Whether something speaks for the explanation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mood {
    /// It does.
    Good,
    /// It speaks against it.
    Bad,
    /// Neither.
    Plain,
}

/// A part of the page.
pub struct Section {
    /// Its anchor.
    pub id: Cow<'static, str>,
    /// Its heading.
    pub title: String,
    /// What it is about, a paragraph each.
    pub lead: Vec<String>,
    /// HTML of its own, already escaped.
    pub html: String,
    /// Its figures.
    pub figures: Vec<Figure>,
}

impl ReportPage<'_> {
    /// The page; `png` encodes pictures.
    pub fn html(&self, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
        let sections: String = self.sections.iter().map(|section| section.html("", png)).collect();
        let contents = std::iter::once(("episode", "The episode"))
            .chain(self.sections.iter().map(|s| (&*s.id, &*s.title)))
            .map(|(id, title)| format!("<a href=\"#{id}\">{}</a>", escape(title)));
        let parts = [
            ("title", escape(&self.title)),
            ("subtitle", escape(&self.subtitle)),
            ("style", style()),
            ("contents", joined(contents)),
            ("tiles", self.tiles.iter().map(Tile::html).collect()),
            ("summary", joined(self.summary.iter().map(|s| format!("<li>{}</li>", escape(s))))),
            ("film", base64(self.film.mp4)),
            ("seen", escape(self.seen)),
            ("columns", self.columns()),
            // A closing tag inside of the data would end it.
            ("data", self.data.replace("</", "<\\/")),
            ("sections", sections),
            ("notes", joined(self.notes.iter().map(|s| format!("<p>{}</p>", escape(s))))),
            ("script", SCRIPT.to_owned()),
        ];
        fill_in(TEMPLATE, &parts)
    }

    fn columns(&self) -> String {
        if self.columns.is_empty() {
            return String::new();
        }
        let names = joined(self.columns.iter().map(|name| format!("<span>{}</span>", escape(name))));
        format!("<div class=\"columns\">{names}</div>")
    }
}

/// A page without an episode: what there is to know, a sentence each, and sections, each with the folder that its figures'
/// files are in: nothing, or a name and a slash.
pub fn plain_page(
    title: &str,
    subtitle: &str,
    summary: &[String],
    sections: &[(String, Section)],
    notes: &[String],
    png: &dyn Fn(Image<'_>) -> Vec<u8>,
) -> String {
    let contents = sections.iter().map(|(_, s)| format!("<a href=\"#{}\">{}</a>", s.id, escape(&s.title)));
    let parts = [
        ("title", escape(title)),
        ("subtitle", escape(subtitle)),
        ("style", style()),
        ("contents", joined(contents)),
        ("summary", joined(summary.iter().map(|s| format!("<li>{}</li>", escape(s))))),
        ("sections", sections.iter().map(|(folder, section)| section.html(folder, png)).collect()),
        ("notes", joined(notes.iter().map(|s| format!("<p>{}</p>", escape(s))))),
    ];
    fill_in(PLAIN_TEMPLATE, &parts)
}

/// Puts texts where the template names them; what a text says is not looked at again.
fn fill_in(template: &str, parts: &[(&str, String)]) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").expect("the template closes what it opens");
        let part = parts.iter().find(|(known, _)| *known == name).expect("the template names known parts");
        out.push_str(before);
        out.push_str(&part.1);
        rest = after;
    }
    out + rest
}

fn style() -> String {
    let (light, dark) = (variables(Ink::light), variables(Ink::dark));
    format!(
        ":root{{{light}}}@media(prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}\
         :root[data-theme=dark]{{{dark}}}{}\n{STYLE}",
        style_rules()
    )
}

impl Tile {
    fn html(&self) -> String {
        let mood = match self.mood {
            Mood::Good => " good",
            Mood::Bad => " bad",
            Mood::Plain => "",
        };
        format!(
            "<div class=\"tile{mood}\"><b>{}</b><span>{}</span><small>{}</small></div>",
            escape(&self.value),
            escape(&self.name),
            escape(&self.note)
        )
    }
}

impl Section {
    fn html(&self, folder: &str, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
        let lead = joined(self.lead.iter().map(|p| format!("<p>{}</p>", escape(p))));
        let figures: String = self.figures.iter().map(|figure| figure_html(folder, figure, png)).collect();
        format!(
            "<section id=\"{}\"><h2>{}</h2><div class=\"lead\">{lead}</div>{}<div class=\"figures\">{figures}</div></section>",
            self.id,
            escape(&self.title),
            self.html
        )
    }
}

fn figure_html(folder: &str, figure: &Figure, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
    let wide = if figure.wide { " class=\"wide\"" } else { "" };
    let name = figure.name;
    // A relative address may not begin with a name that has a colon, as those of shifts have.
    let here = if folder.is_empty() { "" } else { "./" };
    let (id, file) = (escape(&format!("{folder}{name}")), escape(&format!("{here}{folder}figures/{name}")));
    format!(
        "<figure{wide} id=\"figure-{id}\"><figcaption><b>{}</b></figcaption><div class=\"sheet\">{}</div>\
         <p class=\"caption\">{} <span class=\"files\"><a href=\"{file}.svg\">SVG</a> <a \
         href=\"{file}.png\">PNG</a> <a href=\"{file}.csv\">CSV</a></span></p></figure>",
        escape(&figure.title),
        svg(&figure.drawing, &figure.title, Dress::Page, png),
        escape(&figure.caption)
    )
}

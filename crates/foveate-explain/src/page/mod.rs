//! The report as one HTML page that needs nothing else: no network, no other file.

mod player;

use std::borrow::Cow;

use foveate_core::Image;

use crate::figure::{Dress, Figure, Ink, style_rules, svg, variables};
use crate::text::{base64, escape, joined, latex};
pub use player::{FilmEffects, PageFilm, player_data};

const TEMPLATE: &str = include_str!("template.html");
const EPISODE: &str = include_str!("episode.html");
const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("script.js");
const FOLDS: &str = include_str!("folds.js");
/// The heading of big numbers and sentences where they are folded.
const FINDINGS: &str = "What was found";
/// The button that the script of the player answers.
const THEME: &str = "<button id=\"theme\" type=\"button\" title=\"Light or dark (d)\" aria-label=\"Light or dark\">◐</button>";

/// The page of findings, from top to bottom.
#[derive(Default)]
pub struct ReportPage<'a> {
    /// What it is about, in a line.
    pub title: String,
    /// Which weights, world and seed.
    pub subtitle: String,
    /// What a person should know after a minute: a sentence for each question, with one number.
    pub answers: Vec<PageAnswer>,
    /// The pictures for that minute, one if possible.
    pub pictures: Vec<Figure>,
    /// True if everything else is folded, to be opened.
    pub folded: bool,
    /// Big numbers.
    pub tiles: Vec<Tile>,
    /// What was found, a sentence each.
    pub summary: Vec<String>,
    /// The episode, if one is shown.
    pub episode: Option<PageEpisode<'a>>,
    /// The rest.
    pub sections: Vec<Section>,
    /// What stands at the foot: how it was made, as sentences.
    pub notes: Vec<String>,
}

/// The episode of a page, with its player.
pub struct PageEpisode<'a> {
    /// The film.
    pub film: PageFilm<'a>,
    /// What the agent's part of the film shows.
    pub seen: &'a str,
    /// Names of the columns of that part, from the left; empty if it has none.
    pub columns: &'a [String],
    /// The film's data, from [`player_data`].
    pub data: String,
}

/// The answer to a question, for the top of the page.
#[derive(Debug, Clone, PartialEq)]
pub struct PageAnswer {
    /// `yes`, `no` or `undecided`; empty for a sentence that answers no question.
    pub answer: String,
    /// The answer as a sentence.
    pub sentence: String,
    /// The number that it rests on with its interval, or what would decide it.
    pub number: String,
    /// Whether it speaks for the explanation.
    pub mood: Mood,
    /// The anchor of the section that says more.
    pub more: &'static str,
}

/// A big number.
#[derive(Debug, Clone, PartialEq)]
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
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Section {
    /// Its anchor.
    pub id: Cow<'static, str>,
    /// Its heading.
    pub title: String,
    /// What it is about, a paragraph each.
    pub lead: Vec<String>,
    /// Answers, and what they are about.
    pub points: Vec<[String; 2]>,
    /// Its tables.
    pub tables: Vec<PageTable>,
    /// Its figures.
    pub figures: Vec<Figure>,
    /// The folder that the files of its figures are in: nothing, or a name and a slash.
    pub folder: String,
}

/// A table of a page. An interval in brackets is set smaller; in a column `verdict` stand verdicts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PageTable {
    /// A paragraph above it.
    pub lead: Option<String>,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A cell for every column.
    pub rows: Vec<Vec<String>>,
}

/// Tables with more columns are set in smaller letters.
const MANY: usize = 5;

impl PageTable {
    /// A table of these columns.
    pub fn new<const N: usize>(columns: [&str; N], rows: impl IntoIterator<Item = [String; N]>) -> Self {
        let rows = rows.into_iter().map(Into::into).collect();
        PageTable { lead: None, columns: columns.map(Into::into).into(), rows }
    }

    /// The table for LaTeX with the package `booktabs`, under what stands above it as a comment.
    pub fn latex(&self) -> String {
        let lead = self.lead.as_ref().map_or(String::new(), |lead| format!("% {lead}\n"));
        let rows = self.rows.iter().map(|row| row.iter().map(|cell| &**cell));
        lead + &latex(self.columns.iter().map(|name| &**name), rows)
    }

    fn html(&self) -> String {
        let lead = self
            .lead
            .as_ref()
            .map_or(String::new(), |lead| format!("<div class=\"lead\"><p>{}</p></div>", escape(lead)));
        let many = if self.columns.len() > MANY { " class=\"many\"" } else { "" };
        let head = joined(self.columns.iter().map(|name| format!("<th>{}</th>", escape(name))));
        let rows = joined(self.rows.iter().map(|row| {
            let cells =
                self.columns.iter().zip(row).map(|(column, cell)| cell_html(column == "verdict", cell));
            format!("<tr>{}</tr>", joined(cells))
        }));
        format!(
            "{lead}<div class=\"card\"><table{many}><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
        )
    }
}

fn cell_html(verdict: bool, cell: &str) -> String {
    let class = match cell {
        "supported" => "yes",
        _ => "no",
    };
    match cell.split_once(" (") {
        _ if verdict && cell != "the null" => {
            format!("<td><span class=\"verdict {class}\">{}</span></td>", escape(cell))
        }
        Some((value, interval)) if interval.ends_with(')') => {
            format!("<td>{} <small>({}</small></td>", escape(value), escape(interval))
        }
        _ => format!("<td>{}</td>", escape(cell)),
    }
}

impl ReportPage<'_> {
    /// The page; `png` encodes pictures.
    pub fn html(&self, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
        let episode = self.episode.as_ref();
        let sections: String = self
            .sections
            .iter()
            .map(|section| self.fold(&section.id, &section.title, &section.body(png)))
            .collect();
        // The headings of a folded page are its contents.
        let contents = episode
            .map(|_| ("episode", "The episode"))
            .into_iter()
            .chain(self.sections.iter().map(|s| (&*s.id, &*s.title)))
            .filter(|_| !self.folded)
            .map(|(id, title)| format!("<a href=\"#{id}\">{}</a>", escape(title)));
        let notes = joined(self.notes.iter().map(|s| format!("<p>{}</p>", escape(s))));
        let scripts = episode.map_or(String::new(), PageEpisode::scripts);
        let parts = [
            ("title", escape(&self.title)),
            ("subtitle", escape(&self.subtitle)),
            ("style", style()),
            ("contents", joined(contents)),
            ("minute", self.minute(png)),
            (
                "episode",
                episode.map_or(String::new(), |episode| self.fold("episode", "The episode", &episode.html())),
            ),
            (
                "findings",
                if self.folded { self.fold("findings", FINDINGS, &self.found()) } else { String::new() },
            ),
            ("sections", sections),
            ("notes", if self.folded { self.fold("made", "How this was made", &notes) } else { notes }),
            ("theme", episode.map_or(String::new(), |_| THEME.to_owned())),
            ("script", if self.folded { format!("<script>{FOLDS}</script>\n{scripts}") } else { scripts }),
        ];
        fill_in(TEMPLATE, &parts)
    }

    /// What can be read in a minute: the answers and the pictures, or, where nothing is folded, numbers and sentences.
    fn minute(&self, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
        if !self.folded {
            return self.found();
        }
        let answers = joined(self.answers.iter().map(PageAnswer::html));
        let answers =
            if answers.is_empty() { answers } else { format!("<ul class=\"answers\">{answers}</ul>") };
        let pictures = joined(self.pictures.iter().map(|figure| figure_html("", figure, png)));
        let pictures =
            if pictures.is_empty() { pictures } else { format!("<div class=\"figures\">{pictures}</div>") };
        answers + &pictures
    }

    /// Big numbers and sentences.
    fn found(&self) -> String {
        let tiles: String = self.tiles.iter().map(Tile::html).collect();
        let tiles = if tiles.is_empty() { tiles } else { format!("<div class=\"tiles\">{tiles}</div>\n") };
        let summary = joined(self.summary.iter().map(|s| format!("<li>{}</li>", escape(s))));
        format!("{tiles}<ul class=\"summary\">{summary}</ul>")
    }

    /// A part of the page with its heading, folded if the page is. The anchor is inside of the fold: browsers open the folds around
    /// what an address names.
    fn fold(&self, id: &str, title: &str, body: &str) -> String {
        let title = escape(title);
        if self.folded {
            format!(
                "<details><summary><h2>{title}</h2></summary><section id=\"{id}\" aria-label=\"{title}\">{body}</section></details>\n"
            )
        } else {
            format!("<section id=\"{id}\"><h2>{title}</h2>{body}</section>\n")
        }
    }
}

impl PageEpisode<'_> {
    fn html(&self) -> String {
        let columns = joined(self.columns.iter().map(|name| format!("<span>{}</span>", escape(name))));
        let columns =
            if columns.is_empty() { columns } else { format!("<div class=\"columns\">{columns}</div>") };
        let parts = [("film", base64(self.film.mp4)), ("seen", escape(self.seen)), ("columns", columns)];
        fill_in(EPISODE, &parts)
    }

    fn scripts(&self) -> String {
        // A closing tag inside of the data would end it.
        let data = self.data.replace("</", "<\\/");
        format!("<script type=\"application/json\" id=\"data\">{data}</script>\n<script>{SCRIPT}</script>\n")
    }
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
        format!(
            "<div class=\"tile {}\"><b>{}</b><span>{}</span><small>{}</small></div>",
            self.mood.class(),
            escape(&self.value),
            escape(&self.name),
            escape(&self.note)
        )
    }
}

impl PageAnswer {
    fn html(&self) -> String {
        let PageAnswer { answer, sentence, number, mood, more } = self;
        let [answer, sentence, number] = [answer, sentence, number].map(|text| escape(text));
        let badge = if answer.is_empty() { answer } else { format!("<b>{answer}</b>") };
        format!(
            "<li class=\"{}\">{badge}<p>{sentence} <small>{number} <a href=\"#{more}\">more</a></small></p></li>",
            mood.class()
        )
    }
}

impl Mood {
    const fn class(self) -> &'static str {
        match self {
            Mood::Good => "good",
            Mood::Bad => "bad",
            Mood::Plain => "plain",
        }
    }
}

impl Section {
    /// Everything below the heading.
    fn body(&self, png: &dyn Fn(Image<'_>) -> Vec<u8>) -> String {
        let lead = joined(self.lead.iter().map(|p| format!("<p>{}</p>", escape(p))));
        let points = joined(
            self.points
                .iter()
                .map(|[answer, what]| format!("<li><b>{}</b> — {}</li>", escape(answer), escape(what))),
        );
        let points = if points.is_empty() { points } else { format!("<ul class=\"summary\">{points}</ul>") };
        let tables: String = self.tables.iter().map(PageTable::html).collect();
        let figures: String =
            self.figures.iter().map(|figure| figure_html(&self.folder, figure, png)).collect();
        format!("<div class=\"lead\">{lead}</div>{points}{tables}<div class=\"figures\">{figures}</div>")
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

//! Composes one frame of a film: the world, the agent's observation, its action and its score.

mod layout;
mod readout;

use foveate_core::{Image, ImageBuf};

use crate::canvas::{self, Rect};
use crate::{Face, FilmError};
use layout::Layout;
use readout::Curve;

pub(crate) const GROUND: [u8; 3] = [15, 18, 23];
pub(crate) const SURFACE: [u8; 3] = [24, 29, 36];
pub(crate) const TRACK: [u8; 3] = [38, 45, 55];
pub(crate) const TEXT: [u8; 3] = [230, 234, 240];
pub(crate) const MUTED: [u8; 3] = [134, 144, 158];
pub(crate) const AMBER: [u8; 3] = [255, 182, 77];
/// Frame of a part whose absence changes nothing.
const WITHOUT_EFFECT: [u8; 3] = [70, 78, 110];
/// Frame of a part whose absence changes most.
const WITH_EFFECT: [u8; 3] = [255, 120, 30];

/// Settings that stay the same throughout a film.
#[derive(Debug, Clone, PartialEq)]
pub struct FrameSettings {
    /// Width of a frame in pixels, 320..=3840, even.
    pub width: usize,
    /// Height of a frame in pixels, 160..=2160, even.
    pub height: usize,
    /// Title above the world: its name, picture, variant and seed.
    pub title: String,
    /// One dial per action dimension.
    pub dials: Vec<Dial>,
    /// Number of steps after which the episode ends, if known.
    pub max_steps: Option<usize>,
}

/// How to show one action dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Dial {
    /// Label beside the dial.
    pub name: String,
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The content of one frame: one moment of an episode.
#[derive(Debug, Clone, Copy)]
pub struct FrameContent<'a> {
    /// The rendered world, best at the size given by [`FrameComposer::world_size`]; `None` if the world
    /// cannot be rendered.
    pub world: Option<Image<'a>>,
    /// The agent's observation.
    pub seen: AgentView<'a>,
    /// The action chosen for this observation, one number per dial; empty if the agent did not act.
    pub action: &'a [f64],
    /// Sum of rewards so far.
    pub score: f64,
    /// Steps so far.
    pub step: usize,
    /// Simulated seconds so far.
    pub time_s: f64,
}

/// An observation in a form that can be shown.
#[derive(Debug, Clone, Copy)]
pub enum AgentView<'a> {
    /// A picture, with frames around the attended parts.
    Picture(Image<'a>, &'a [Mark]),
    /// The same where the picture shows shuffled patches on the left and the original order on the right.
    SideBySide(Image<'a>, &'a [Mark]),
    /// A table of small maps: of each node of a network, where it attends to.
    Maps(Image<'a>),
    /// Numbers, drawn as bars.
    Numbers(&'a [f32]),
    /// Attention weights of named inputs, drawn beside the names: as bars, or, of more than one query, as cells.
    Attended {
        /// Names of the inputs.
        names: &'a [String],
        /// `[queries, names]`: weights.
        weights: &'a [f32],
    },
}

/// What a picture of [`AgentView`] shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PictureKind {
    /// The observation: [`AgentView::Picture`].
    #[default]
    Observation,
    /// [`AgentView::SideBySide`].
    SideBySide,
    /// [`AgentView::Maps`].
    Maps,
}

impl<'a> AgentView<'a> {
    /// A picture of this kind, with frames around the attended parts; maps have none.
    pub const fn picture(kind: PictureKind, picture: Image<'a>, marks: &'a [Mark]) -> Self {
        match kind {
            PictureKind::Observation => AgentView::Picture(picture, marks),
            PictureKind::SideBySide => AgentView::SideBySide(picture, marks),
            PictureKind::Maps => AgentView::Maps(picture),
        }
    }
}

impl AgentView<'_> {
    /// What is shown, as its title says it.
    fn title(&self) -> &'static str {
        match self {
            AgentView::Picture(_, marks) if marks.iter().any(|mark| mark.effect.is_some()) => {
                "white: what it attends to; frames: what changes its action"
            }
            AgentView::Picture(..) | AgentView::Numbers(_) => "what the agent sees",
            AgentView::SideBySide(..) => "what the agent sees, and the original order",
            AgentView::Maps(_) => "where cells attend to, by head",
            AgentView::Attended { names, weights } if weights.len() > names.len() => {
                "weights, a cell per query: red +, blue -"
            }
            AgentView::Attended { .. } => "what the agent attends to",
        }
    }
}

/// A rectangle of the observation that is framed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mark {
    /// Left edge in pixels of the observation.
    pub x: f32,
    /// Top edge in pixels of the observation.
    pub y: f32,
    /// Width in pixels of the observation.
    pub width: f32,
    /// Height in pixels of the observation.
    pub height: f32,
    /// How much it is said to matter, from 0.0 to 1.0; without an effect the frame's opacity.
    pub opacity: f32,
    /// How much it was measured to matter, from 0.0 (nothing changes without it) to 1.0: width and colour of the frame.
    /// `None` where that was not measured.
    pub effect: Option<f32>,
}

/// Composes frames.
pub struct FrameComposer {
    settings: FrameSettings,
    layout: Layout,
    /// The parts that do not change.
    backdrop: ImageBuf,
    frame: ImageBuf,
    label: Face,
    value: Face,
    headline: Face,
    curve: Curve,
    /// True if the names of columns fit below them.
    names_fit: bool,
}

impl FrameComposer {
    /// The size for which the layout was designed; both sides are multiples of 16, which video codecs
    /// compress best.
    pub const SIZE: (usize, usize) = (layout::WIDTH, layout::HEIGHT);

    /// Creates a composer with these settings.
    ///
    /// # Errors
    /// When the size is out of range or odd.
    pub fn new(settings: FrameSettings) -> Result<Self, FilmError> {
        let layout = Layout::new(settings.width, settings.height)?;
        let s = layout.scale;
        let mut backdrop = ImageBuf::black(settings.width, settings.height);
        canvas::fill(&mut backdrop, 0.0, 0.0, settings.width as f32, settings.height as f32, GROUND, 1.0);
        canvas::fill_round(&mut backdrop, layout.world, layout.radius, SURFACE);
        canvas::fill_round(&mut backdrop, layout.seen, layout.radius, SURFACE);
        let label = Face::new(9.0 * s, 1.35 * s).tracked(0.3 * s);
        let value = Face::new(9.5 * s, 1.5 * s);
        let headline = Face::new(17.0 * s, 2.4 * s);
        let y = layout.title_y;
        label.write(&mut backdrop, layout.world.x as f32, y, &settings.title, TEXT);
        let mut composer = FrameComposer {
            frame: backdrop.clone(),
            curve: Curve::new(layout.curve, settings.max_steps),
            settings,
            layout,
            backdrop,
            label,
            value,
            headline,
            names_fit: false,
        };
        composer.draw_names();
        Ok(composer)
    }

    /// Size of the world in the frame, (width, height); render the world at this size.
    pub fn world_size(&self) -> (usize, usize) {
        (self.layout.world.width, self.layout.world.height)
    }

    /// Size of the agent's view in the frame, (width, height), for pictures that are drawn for it.
    pub fn seen_size(&self) -> (usize, usize) {
        (self.layout.seen.width, self.layout.seen.height)
    }

    /// Adds the score of a moment without a frame to the score curve.
    pub fn skip_frame(&mut self, step: usize, score: f64) {
        self.curve.take(step, score);
    }

    /// Composes the frame of one moment; `content.step` should not decrease.
    pub fn compose(&mut self, content: &FrameContent<'_>) -> &ImageBuf {
        self.frame.rgb_mut().copy_from_slice(self.backdrop.rgb());
        let radius = self.layout.radius;
        if let Some(world) = content.world {
            canvas::put(&mut self.frame, self.layout.world, world);
            canvas::round_off(&mut self.frame, self.layout.world, radius, GROUND);
        }
        let title_x = self.layout.seen.x as f32;
        self.label.write(&mut self.frame, title_x, self.layout.title_y, content.seen.title(), MUTED);
        match content.seen {
            AgentView::Picture(picture, marks) | AgentView::SideBySide(picture, marks) => {
                let rect = fitted(self.layout.seen, picture.width(), picture.height());
                canvas::put(&mut self.frame, rect, picture);
                self.draw_marks(rect, picture, marks);
                canvas::round_off(&mut self.frame, rect, radius, GROUND);
            }
            AgentView::Maps(maps) => {
                let rect = fitted(self.layout.seen, maps.width(), maps.height());
                canvas::put(&mut self.frame, rect, maps);
                canvas::round_off(&mut self.frame, rect, radius, GROUND);
            }
            AgentView::Numbers(numbers) => readout::bars(&mut self.frame, self.layout.seen, numbers),
            AgentView::Attended { names, weights } => {
                readout::named_weights(&mut self.frame, self.layout.seen, &self.label, names, weights);
            }
        }
        self.curve.take(content.step, content.score);
        self.draw_readouts(content);
        self.draw_dials(content.action);
        &self.frame
    }

    fn draw_marks(&mut self, rect: Rect, picture: Image<'_>, marks: &[Mark]) {
        let across = rect.width as f32 / picture.width() as f32;
        let down = rect.height as f32 / picture.height() as f32;
        let thick = (1.5 * self.layout.scale).max(1.0);
        // The most important mark is drawn last, on top of the others.
        for mark in marks.iter().rev() {
            let outline = [
                rect.x as f32 + mark.x * across,
                rect.y as f32 + mark.y * down,
                mark.width * across,
                mark.height * down,
            ];
            let Some(effect) = mark.effect.map(|effect| effect.clamp(0.0, 1.0)) else {
                let opacity = (0.15 + 0.85 * mark.opacity).clamp(0.0, 1.0);
                canvas::frame(&mut self.frame, outline, thick, AMBER, opacity);
                continue;
            };
            let colour = [0, 1, 2].map(|i| lerp(WITHOUT_EFFECT[i], WITH_EFFECT[i], effect));
            canvas::frame(&mut self.frame, outline, thick * (0.75 + 1.5 * effect), colour, 1.0);
        }
    }
}

/// Between two levels.
fn lerp(from: u8, to: u8, part: f32) -> u8 {
    (f32::from(from) + part * (f32::from(to) - f32::from(from))).round() as u8
}

/// The largest rectangle with the aspect ratio `width` : `height`, centred in `within`.
fn fitted(within: Rect, width: usize, height: usize) -> Rect {
    if width == 0 || height == 0 {
        return within;
    }
    let by_width = (within.width, within.width * height / width);
    let by_height = (within.height * width / height, within.height);
    let (w, h) = if by_width.1 <= within.height { by_width } else { by_height };
    let (w, h) = (w.max(1), h.max(1));
    Rect { x: within.x + (within.width - w) / 2, y: within.y + (within.height - h) / 2, width: w, height: h }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(width: usize, height: usize, dials: usize) -> FrameSettings {
        FrameSettings {
            width,
            height,
            title: "a world   seed 1".to_owned(),
            dials: (0..dials).map(|i| Dial { name: format!("dial {i}"), low: -1.0, high: 1.0 }).collect(),
            max_steps: Some(1000),
        }
    }

    fn content<'a>(seen: AgentView<'a>, action: &'a [f64], step: usize) -> FrameContent<'a> {
        FrameContent { world: None, seen, action, score: step as f64 * 0.9, step, time_s: step as f64 * 0.02 }
    }

    #[test]
    fn any_size_and_any_number_of_dials_can_be_composed() {
        let rgb = vec![90; 96 * 96 * 3];
        let picture = Image::new(96, 96, &rgb).expect("sizes agree");
        let marks = [Mark { x: -5.0, y: 90.0, width: 40.0, height: 40.0, opacity: 1.0, effect: Some(0.5) }];
        for (width, height) in [(320, 160), (1072, 544), (1000, 300)] {
            for dials in [0, 1, 3, 4, 5, 17, 60] {
                let mut composer =
                    FrameComposer::new(settings(width, height, dials)).expect("a size in range");
                let action = vec![0.5; dials];
                let empty = composer.compose(&content(AgentView::Numbers(&[]), &action, 0)).clone();
                assert_eq!((empty.width(), empty.height()), (width, height));
                let full = composer.compose(&content(AgentView::Picture(picture, &marks), &action, 700));
                assert_ne!(&empty, full);
            }
        }
    }

    #[test]
    fn columns_have_names() {
        let frame = |names: &[&str], chosen: usize| {
            let dials: Vec<Dial> =
                names.iter().map(|&name| Dial { name: name.into(), low: 0.0, high: 1.0 }).collect();
            let action: Vec<f64> = (0..names.len()).map(|i| f64::from(u8::from(i == chosen))).collect();
            let mut composer =
                FrameComposer::new(FrameSettings { dials, ..settings(1072, 544, 0) }).expect("a size");
            composer.compose(&content(AgentView::Numbers(&[]), &action, 0)).clone()
        };
        assert_ne!(frame(&["a", "b", "c", "d", "e"], 2), frame(&["a", "b", "c", "d", "f"], 2), "all names");
        // Eighteen long names do not fit: the choice alone has its name.
        let long: Vec<String> = (0..18).map(|i| format!("right and fire {i}")).collect();
        let mut names: Vec<&str> = long.iter().map(String::as_str).collect();
        let first = frame(&names, 4);
        names[5] = "left and fire";
        assert_eq!(first, frame(&names, 4), "not chosen");
        names[4] = "left and fire";
        assert_ne!(first, frame(&names, 4), "chosen");
    }

    #[test]
    fn a_frame_depends_on_its_moment_only() {
        let numbers = [0.5, -1.0, f32::NAN, 1e30];
        let mut composer = FrameComposer::new(settings(640, 330, 2)).expect("a size in range");
        let first = composer.compose(&content(AgentView::Numbers(&numbers), &[0.1, f64::NAN], 0)).clone();
        assert_eq!(&first, composer.compose(&content(AgentView::Numbers(&numbers), &[0.1, f64::NAN], 0)));
        assert_ne!(&first, composer.compose(&content(AgentView::Numbers(&numbers), &[0.9, f64::NAN], 0)));
    }

    #[test]
    fn maps_of_the_size_of_the_view_are_shown_pixel_by_pixel() {
        let mut composer = FrameComposer::new(settings(640, 330, 2)).expect("a size in range");
        let (width, height) = composer.seen_size();
        let rgb: Vec<u8> = (0..width * height).flat_map(|at| [(at % 251) as u8, 7, 9]).collect();
        let maps = Image::new(width, height, &rgb).expect("sizes agree");
        let seen = AgentView::picture(PictureKind::Maps, maps, &[]);
        let frame = composer.compose(&content(seen, &[], 0)).clone();
        let (left, top) = (0..frame.width() * frame.height())
            .map(|at| (at % frame.width(), at / frame.width()))
            .find(|&(x, y)| frame.as_image().pixel(x, y)[1..] == [7, 9])
            .expect("they are there");
        let (x, y) = (width / 2, height / 2);
        let place = (0..2 * width).find(|&dx| {
            let shown = frame.as_image().pixel((left + dx).saturating_sub(width / 2), top + y);
            shown == maps.pixel(x, y)
        });
        assert!(place.is_some(), "no pixel is lost");
    }

    #[test]
    fn what_is_attended_to_is_named() {
        let names = |n: usize| (0..n).map(|i| format!("sensor {i}")).collect::<Vec<_>>();
        let mut composer = FrameComposer::new(settings(640, 330, 2)).expect("a size in range");
        let mut frame = |names: &[String], weights: &[f32]| {
            composer.compose(&content(AgentView::Attended { names, weights }, &[], 0)).clone()
        };
        let first = frame(&names(3), &[0.1, 0.8, 0.1]);
        assert_ne!(first, frame(&names(3), &[0.8, 0.1, 0.1]));
        // Of two queries, each has its own cell, coloured by its sign.
        let codes = [0.1, 0.8, -0.1, -0.5, 0.0, f32::NAN];
        assert_ne!(frame(&names(3), &codes), frame(&names(3), &codes.map(f32::abs)));
        assert_ne!(frame(&names(3), &codes), first);
        frame(&names(2), &vec![1.0; 2 * 100_000]);
        assert_ne!(first, frame(&["a", "b", "c"].map(String::from), &[0.1, 0.8, 0.1]));
        // Any number of marks and values.
        frame(&[], &[]);
        frame(&names(5000), &vec![f32::NAN; 5000]);
    }

    #[test]
    fn sizes_out_of_range_are_errors() {
        for (width, height) in
            [(0, 0), (318, 160), (320, 158), (321, 200), (400, 201), (3842, 200), (400, 2162)]
        {
            let made = FrameComposer::new(settings(width, height, 3));
            assert!(matches!(made, Err(FilmError::Size { .. })), "{width}x{height}");
        }
    }

    #[test]
    fn observations_keep_their_proportions() {
        let within = Rect { x: 10, y: 20, width: 100, height: 60 };
        for ((width, height), expect) in [
            ((96, 96), Rect { x: 30, y: 20, width: 60, height: 60 }),
            ((10, 1), Rect { x: 10, y: 45, width: 100, height: 10 }),
            ((5, 3), within),
            ((1, 100_000), Rect { x: 59, y: 20, width: 1, height: 60 }),
        ] {
            assert_eq!(fitted(within, width, height), expect, "{width}x{height}");
        }
    }
}

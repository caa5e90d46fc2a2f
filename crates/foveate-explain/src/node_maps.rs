//! In grid worlds: where the nodes of a network attend to, as a table of small maps.

use foveate_core::{Attention, GridObject, GridView, ImageBuf, PatchGrid, Tokens};

use crate::charts::{glow, percent};
use crate::figure::{Anchor, Drawing, Ink, raster_dark};

/// A cell of the observation whose attention is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MapNode {
    /// What is there: `agent`, `in front`, `key`.
    pub name: String,
    /// What else there is to know, such as what lies before the agent, or `not in view`.
    pub note: String,
    /// The cell of the observation; `None` when it is hidden or out of view.
    pub cell: Option<usize>,
}

/// Most objects that get a row of maps.
const OBJECTS: usize = 4;
/// Width of the names, in widths of the table.
const NAMES: f64 = 0.22;

/// The cells whose attention is drawn: the agent's own, the one before it, and one for each object, of several with the same
/// name the first one in view. Their order is the same in every step of an episode.
pub fn map_nodes(view: &GridView) -> Vec<MapNode> {
    // The last word is the kind: there is little room.
    let content = |cell: usize| {
        let content = view.cells[cell].content.as_deref().unwrap_or("hidden");
        content.rsplit(' ').next().unwrap_or(content).to_owned()
    };
    let mut nodes = vec![
        MapNode { name: "agent".into(), note: String::new(), cell: Some(view.agent) },
        MapNode {
            name: "in front".into(),
            note: view.front.map_or_else(|| "not in view".into(), content),
            cell: view.front,
        },
    ];
    for (at, object) in view.objects.iter().enumerate() {
        let same = |other: &&GridObject| other.name == object.name;
        if view.objects[..at].iter().any(|other| same(&other)) || nodes.len() == OBJECTS + 2 {
            continue;
        }
        let name = object_label(view, object);
        let by_kind = name == object.kind;
        let shown = view.objects.iter().filter(same).find(|other| other.cell.is_some()).unwrap_or(object);
        nodes.push(MapNode {
            name,
            note: match (shown.in_world, shown.cell) {
                (_, None) => "not in view".into(),
                (None, Some(_)) => "carried".into(),
                (Some(_), Some(_)) if by_kind && object.name != object.kind => {
                    object.name.replace(&format!(" {}", object.kind), "")
                }
                (Some(_), Some(_)) => String::new(),
            },
            cell: shown.cell,
        });
    }
    nodes
}

/// What an object is called among those of its world: its kind, or its name if there are others of its kind.
pub(crate) fn object_label(view: &GridView, object: &GridObject) -> String {
    let mut alike = view.objects.iter().filter(|other| other.kind == object.kind);
    if alike.all(|other| other.name == object.name) { object.kind.into() } else { object.name.clone() }
}

/// A table of maps over the view, `size` points wide and at most as high: a row for each of [`map_nodes`], first the view
/// with that cell framed, then for each head where the cell attends to. The brightest cell of a map has its largest weight,
/// which stands below if there is room. Attention that is not of every cell is one row, summed over its queries.
///
/// `None` when the attention is not over the cells of this view.
pub fn node_maps(view: &GridView, attention: &Attention<'_>, [width, height]: [f64; 2]) -> Option<Drawing> {
    let Maps { nodes, grid, each, heads } = Maps::of(view, attention)?;
    let [columns, rows] = view.size;
    let letters = (0.033 * width).min(12.0);
    let (left, top) = (NAMES * width, 1.9 * letters);
    let pitch = ((width - left) / (heads + 1) as f64).min((height - top) / nodes.len() as f64);
    // Room for a line of text below a map that is large enough to need one.
    let below = if pitch >= 80.0 { 1.5 * letters } else { 0.0 };
    let side = pitch - below - 0.09 * pitch;
    let tall = side * rows as f64 / columns as f64;
    let mut sheet = Drawing::new(width, top + nodes.len() as f64 * pitch);
    let start = |column: usize| left + column as f64 * pitch;
    for column in 0..=heads {
        let name = if column == 0 { "view".to_owned() } else { format!("head {}", column - 1) };
        let at = (start(column) + side / 2.0, 0.75 * top);
        sheet.tick(at, letters, Anchor::Middle, name);
    }
    for (row, node) in nodes.iter().enumerate() {
        let y = top + row as f64 * pitch;
        let middle = y + tall / 2.0;
        let ink = if node.cell.is_none() && each { Ink::Muted } else { Ink::Text };
        sheet.text((0.0, middle - 0.1 * letters), letters, Anchor::Start, ink, &*node.name);
        sheet.text((0.0, middle + 1.2 * letters), 0.85 * letters, Anchor::Start, Ink::Muted, &*node.note);
        sheet.picture([start(0), y, side, tall], view.picture.clone());
        if let Some(cell) = node.cell {
            frame(&mut sheet, [start(0), y, side, tall], view, cell);
        }
        if each && node.cell.is_none() {
            continue;
        }
        for head in 0..heads {
            let weights = weights_of(attention, node, each, head)?;
            let place = [start(head + 1), y, side, tall];
            map(&mut sheet, place, view, grid, node, &weights);
            if below > 0.0 {
                let (most, weight) = largest(&weights);
                let held = view.cells[most].content.as_deref().unwrap_or("hidden");
                let said = format!("{held} {}", percent(weight));
                let at = (place[0] + side / 2.0, y + tall + 1.1 * letters);
                sheet.text(at, 0.9 * letters, Anchor::Middle, Ink::Muted, said);
            }
        }
    }
    Some(sheet)
}

/// What is to be drawn of a moment.
struct Maps {
    nodes: Vec<MapNode>,
    grid: PatchGrid,
    /// True if every cell has attention of its own.
    each: bool,
    heads: usize,
}

impl Maps {
    /// `None` when the attention is not over the cells of this view.
    fn of(view: &GridView, attention: &Attention<'_>) -> Option<Self> {
        let cells = view.cells.len();
        if !matches!(attention.tokens(), Tokens::Grid { .. }) || attention.tokens().len() != cells {
            return None;
        }
        let [columns, rows] = view.size;
        let grid = PatchGrid::tile(columns, rows, 1, 1).ok()?;
        let each = attention.queries() == cells;
        let all = || vec![MapNode { name: "all".into(), note: String::new(), cell: None }];
        let nodes = if each { map_nodes(view) } else { all() };
        Some(Maps { nodes, grid, each, heads: attention.heads() })
    }
}

/// The weights of a node in this head; those of all queries together where not each cell has its own.
fn weights_of(attention: &Attention<'_>, node: &MapNode, each: bool, head: usize) -> Option<Vec<f32>> {
    match node.cell {
        Some(cell) if each => Some(attention.row(head, cell)?.to_vec()),
        _ => Some(attention.importance_of(head).into_owned()),
    }
}

/// Draws where a node attends to, with its own cell framed.
fn map(
    sheet: &mut Drawing,
    place: [f64; 4],
    view: &GridView,
    grid: PatchGrid,
    node: &MapNode,
    weights: &[f32],
) {
    let [columns, rows] = view.size;
    let mut placed = vec![0.0; columns * rows];
    for (cell, &weight) in view.cells.iter().zip(weights) {
        let [x, y] = cell.in_view;
        placed[y * columns + x] = if weight.is_finite() { f64::from(weight.max(0.0)) } else { 0.0 };
    }
    sheet.picture(place, glow(view.picture.as_image(), grid, &placed));
    if let Some(cell) = node.cell {
        frame(sheet, place, view, cell);
    }
}

/// The maps of [`node_maps`] in blocks, as large as they fit: each block has the maps of a node, one for each head, below its
/// name; the view itself is not among them.
fn node_blocks(view: &GridView, attention: &Attention<'_>, [width, height]: [f64; 2]) -> Option<Drawing> {
    const GAP: f64 = 3.0;
    let Maps { nodes, grid, each, heads } = Maps::of(view, attention)?;
    let letters = (0.033 * width.max(height)).min(12.0);
    let (top, caption) = (1.8 * letters, 1.7 * letters);
    let ratio = view.size[1] as f64 / view.size[0] as f64;
    // Width of a map with so many blocks side by side.
    let side = |across: usize| {
        let down = nodes.len().div_ceil(across) as f64;
        let wide = (width / across as f64 - GAP) / heads as f64 - GAP;
        wide.min(((height - top) / down - caption - GAP) / ratio).max(1.0)
    };
    let across = (1..=nodes.len()).max_by(|&a, &b| side(a).total_cmp(&side(b)).then(b.cmp(&a)))?;
    let side = side(across);
    let (block, pitch) = (width / across as f64, caption + side * ratio + GAP);
    let mut sheet = Drawing::new(width, height);
    for (at, node) in nodes.iter().enumerate() {
        let (left, y) = ((at % across) as f64 * block, top + (at / across) as f64 * pitch);
        let ink = if node.cell.is_none() && each { Ink::Muted } else { Ink::Text };
        let note = if node.note.is_empty() { String::new() } else { format!(": {}", node.note) };
        sheet.text((left, y + 1.1 * letters), letters, Anchor::Start, ink, format!("{}{note}", node.name));
        for head in 0..heads {
            let x = left + head as f64 * (side + GAP);
            if at < across {
                sheet.tick((x + side / 2.0, letters), letters, Anchor::Middle, format!("head {head}"));
            }
            if node.cell.is_some() || !each {
                let weights = weights_of(attention, node, each, head)?;
                map(&mut sheet, [x, y + caption, side, side * ratio], view, grid, node, &weights);
            }
        }
    }
    Some(sheet)
}

/// The cell with the largest weight, and the weight.
fn largest(weights: &[f32]) -> (usize, f64) {
    let most = weights.iter().enumerate().filter(|(_, weight)| weight.is_finite());
    most.max_by(|a, b| a.1.total_cmp(b.1)).map_or((0, 0.0), |(at, &weight)| (at, f64::from(weight)))
}

/// Frames a cell of a view that is drawn at `place`.
fn frame(sheet: &mut Drawing, [x, y, width, height]: [f64; 4], view: &GridView, cell: usize) {
    let [across, down] = [width / view.size[0] as f64, height / view.size[1] as f64];
    let [i, j] = view.cells[cell].in_view.map(|place| place as f64);
    let (left, top) = (x + i * across, y + j * down);
    let corners = [(0.0, 0.0), (across, 0.0), (across, down), (0.0, down), (0.0, 0.0)];
    let points = corners.map(|(dx, dy)| (left + dx, top + dy)).to_vec();
    sheet.line(points, Ink::Control, (0.16 * across).max(0.6), 1.0);
}

/// The maps of a moment as a picture of `width` × `height` pixels for films, on a dark ground.
pub fn node_maps_picture(
    view: &GridView,
    attention: &Attention<'_>,
    [width, height]: [usize; 2],
) -> Option<ImageBuf> {
    /// Between the maps and the edges of the picture, in points.
    const MARGIN: f64 = 5.0;
    // Pictures have two pixels a point.
    let size = [width, height].map(|pixels| pixels as f64 / 2.0);
    let maps = node_blocks(view, attention, size.map(|points| (points - 2.0 * MARGIN).max(1.0)))?;
    let mut sheet = Drawing::new(size[0], size[1]);
    sheet.add(maps, (MARGIN, MARGIN));
    Some(raster_dark(&sheet))
}

#[cfg(test)]
mod tests {
    use foveate_core::ViewCell;

    use super::*;
    use crate::figure::Shape;

    /// A view of 3 × 2 cells in columns, the agent in the middle of the lower row.
    fn view() -> GridView {
        let object =
            |kind, name: &str, in_world, cell| GridObject { kind, name: name.into(), in_world, cell };
        GridView {
            size: [3, 2],
            cells: (0..6)
                .map(|at| ViewCell {
                    in_view: [at / 2, at % 2],
                    in_world: Some([at / 2, at % 2]),
                    content: (at != 0).then(|| if at == 4 { "red key".into() } else { "empty".into() }),
                })
                .collect(),
            agent: 3,
            front: Some(2),
            objects: vec![
                object("key", "red key", Some([2, 0]), Some(4)),
                object("key", "blue key", Some([9, 9]), None),
                object("ball", "grey ball", None, Some(3)),
                object("goal", "goal", Some([9, 8]), None),
            ],
            colors: &["red"],
            picture: ImageBuf::black(48, 32),
        }
    }

    #[test]
    fn nodes_are_named_after_what_is_there() {
        let nodes = map_nodes(&view());
        let told: Vec<_> = nodes.iter().map(|node| (&*node.name, &*node.note, node.cell)).collect();
        assert_eq!(
            told,
            [
                ("agent", "", Some(3)),
                ("in front", "empty", Some(2)),
                ("red key", "", Some(4)),
                ("blue key", "not in view", None),
                ("ball", "carried", Some(3)),
                ("goal", "not in view", None),
            ]
        );
    }

    /// Each node's map is brightest where its own row of weights is largest, at that cell's place in the view.
    #[test]
    fn every_map_is_of_its_head_and_node() {
        let view = view();
        // Head h, node q attends to cell (q + h + 1) % 6 alone.
        let mut weights = vec![0.0; 2 * 36];
        for head in 0..2 {
            for query in 0..6 {
                weights[(head * 6 + query) * 6 + (query + head + 1) % 6] = 1.0;
            }
        }
        let tokens = Tokens::Grid { rows: 3, columns: 2 };
        let attention = Attention::soft(tokens, 2, 6, &weights).expect("they fit together");
        let sheet = node_maps(&view, &attention, [600.0, 600.0]).expect("of this view");
        let pictures: Vec<&ImageBuf> = sheet
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Picture { image, .. } => Some(image),
                _ => None,
            })
            .collect();
        let in_view: Vec<usize> = map_nodes(&view).iter().filter_map(|node| node.cell).collect();
        assert_eq!(
            pictures.len(),
            6 + 2 * in_view.len(),
            "a view for each node, two heads for those in view"
        );
        let maps = pictures.iter().filter(|picture| **picture != &view.picture);
        let mut count = 0;
        for (map, (cell, head)) in maps.zip(in_view.iter().flat_map(|&cell| [(cell, 0), (cell, 1)])) {
            let target = (cell + head + 1) % 6;
            let [x, y] = view.cells[target].in_view;
            for (at, cell) in view.cells.iter().enumerate() {
                let [u, v] = cell.in_view;
                let lit = map.as_image().pixel(u * 16 + 8, v * 16 + 8) != [0; 3];
                assert_eq!(lit, [u, v] == [x, y], "node {cell:?}, head {head}, cell {at}");
            }
            count += 1;
        }
        assert_eq!(count, 8);
        let texts: Vec<&str> = sheet
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Text { text, .. } => Some(&**text),
                _ => None,
            })
            .collect();
        assert!(texts.contains(&"red key 100\u{a0}%") || texts.contains(&"empty 100\u{a0}%"), "{texts:?}");
        // In films, maps are as large as they fit, and have the names of their nodes.
        let blocks = node_blocks(&view, &attention, [192.0, 192.0]).expect("of this view");
        let sides: Vec<f64> = blocks
            .shapes
            .iter()
            .filter_map(|shape| match shape {
                Shape::Picture { place, .. } => Some(place[2]),
                _ => None,
            })
            .collect();
        assert!(sides.len() == 8 && sides.iter().all(|&side| side > 40.0), "{sides:?}");
        let named = |name: &str| {
            blocks.shapes.iter().any(|shape| matches!(shape, Shape::Text { text, .. } if &**text == name))
        };
        assert!(["agent", "in front: empty", "blue key: not in view", "head 0"].into_iter().all(named));
        let picture = node_maps_picture(&view, &attention, [384, 300]).expect("of this view");
        assert_eq!((picture.width(), picture.height()), (384, 300));
    }

    #[test]
    fn other_attention_has_no_maps() {
        let names: Vec<String> = (0..6).map(|i| i.to_string()).collect();
        let named = Attention::soft(Tokens::Named(&names), 1, 1, &[0.1; 6]).expect("they fit together");
        assert!(node_maps_picture(&view(), &named, [384, 384]).is_none());
        let tokens = Tokens::Grid { rows: 2, columns: 2 };
        let small = Attention::soft(tokens, 1, 1, &[0.1; 4]).expect("they fit together");
        assert!(node_maps_picture(&view(), &small, [384, 384]).is_none());
        // One query over all cells: one row.
        let tokens = Tokens::Grid { rows: 3, columns: 2 };
        let pooled = Attention::soft(tokens, 2, 1, &[0.1; 12]).expect("they fit together");
        let sheet = node_maps(&view(), &pooled, [300.0, 300.0]).expect("of this view");
        let maps = sheet.shapes.iter().filter(|shape| matches!(shape, Shape::Picture { .. })).count();
        assert_eq!(maps, 3);
    }
}

//! The attention of one decision as a figure, whatever its kind.

use foveate_core::{Attention, Image, ImageBuf, Tokens};

use super::HALF;
use super::looks::heat;
use crate::figure::{Anchor, DataTable, Drawing, Figure, Ink, LETTERS, short};
use crate::heat_map;

/// Most tokens that get a bar; the others are said to be left out.
const BARS: usize = 40;
/// Most nodes of which a table of weights is drawn.
const NODES: usize = 256;

/// The attention as a figure, with the importance of every token as its table.
///
/// * Named tokens and cells of a grid with as many queries as tokens, as nodes that attend to nodes: one square for each
///   head, a row for each query, a column for each token.
/// * Other named tokens and cells of a grid: a bar for each, the most important first.
/// * Patches and cells: a [heat map](heat_map) for each head.
pub fn attention_figure(attention: &Attention<'_>, caption: String) -> Figure {
    let importance = attention.importance();
    let name = |token: usize| match attention.tokens() {
        Tokens::Named(names) => names[token].clone(),
        Tokens::Patches(_) => format!("patch {token}"),
        Tokens::Cells { columns, .. } | Tokens::Grid { columns, .. } => {
            format!("row {}, column {}", token / columns, token % columns)
        }
    };
    let mut table = DataTable::new(&["token", "importance", "rank"]);
    let order = attention.by_rank();
    let mut ranks = vec![None; importance.len()];
    for (rank, &token) in order.iter().enumerate() {
        ranks[token as usize] = Some(rank);
    }
    for (token, (&value, rank)) in importance.iter().zip(&ranks).enumerate() {
        let rank = rank.map_or_else(|| "not selected".to_owned(), |rank| rank.to_string());
        table.row([name(token).as_str().into(), f64::from(value).into(), rank.as_str().into()]);
    }
    let drawing = match attention.tokens() {
        Tokens::Named(_) | Tokens::Grid { .. }
            if attention.queries() == importance.len() && importance.len() <= NODES =>
        {
            squares(attention)
        }
        Tokens::Named(names) => bars(names, &importance, &order),
        Tokens::Grid { .. } => {
            let names: Vec<String> = (0..importance.len()).map(name).collect();
            bars(&names, &importance, &order)
        }
        Tokens::Patches(_) | Tokens::Cells { .. } => maps(attention),
    };
    Figure { name: "attention", title: "What it attended to".into(), caption, wide: false, drawing, table }
}

fn bars(names: &[String], importance: &[f32], order: &[u32]) -> Drawing {
    let (pitch, left) = (20.0, 150.0);
    let shown = &order[..order.len().min(BARS)];
    let mut sheet = Drawing::new(HALF, shown.len() as f64 * pitch + 30.0);
    let most = importance.iter().filter(|x| x.is_finite()).fold(0.0_f64, |m, &x| m.max(f64::from(x)));
    for (i, &token) in shown.iter().enumerate() {
        let (y, value) = (8.0 + i as f64 * pitch, f64::from(importance[token as usize]));
        let part = if most > 0.0 && value.is_finite() { (value / most).max(0.0) } else { 0.0 };
        sheet.tick((left - 8.0, y + 12.0), LETTERS, Anchor::End, &*names[token as usize]);
        sheet.rect([left, y, HALF - left - 70.0, 14.0], Ink::Grid, 1.0);
        sheet.rect([left, y, (HALF - left - 70.0) * part, 14.0], Ink::Attention, 1.0);
        sheet.text((HALF - 4.0, y + 12.0), LETTERS, Anchor::End, Ink::Text, short(value));
    }
    if order.len() > BARS {
        let rest = format!("{} less important ones are not drawn", order.len() - BARS);
        sheet.text((HALF / 2.0, sheet.height - 6.0), LETTERS, Anchor::Middle, Ink::Muted, rest);
    }
    sheet
}

/// One square for each head.
fn squares(attention: &Attention<'_>) -> Drawing {
    let n = attention.queries();
    in_a_row(attention.heads(), 1.0, |head| {
        let mut square = ImageBuf::black(n, n);
        let rows = (0..n).filter_map(|query| attention.row(head, query)).flatten();
        let most =
            rows.clone().filter(|x| x.is_finite()).fold(0.0_f32, |m, &x| m.max(x)).max(f32::MIN_POSITIVE);
        for (pixel, &weight) in square.rgb_mut().as_chunks_mut::<3>().0.iter_mut().zip(rows) {
            *pixel = heat(f64::from(weight / most)).map(|c| c.round() as u8);
        }
        square
    })
}

/// A heat map for each head, over black.
fn maps(attention: &Attention<'_>) -> Drawing {
    let Some(grid) = attention.tokens().grid() else { return Drawing::new(HALF, 1.0) };
    let (width, height) = (grid.width(), grid.height());
    let black = vec![0; width * height * 3];
    let ground = Image::new(width, height, &black);
    in_a_row(attention.heads(), height as f64 / width as f64, |head| {
        ground.and_then(|ground| heat_map(ground, attention, Some(head))).unwrap_or(ImageBuf::black(1, 1))
    })
}

/// Pictures side by side, as many in a row as there is room for.
fn in_a_row(count: usize, proportion: f64, mut picture: impl FnMut(usize) -> ImageBuf) -> Drawing {
    let columns = count.clamp(1, 4);
    let side = (HALF - 12.0 * (columns as f64 + 1.0)) / columns as f64;
    let pitch = side * proportion + 26.0;
    let mut sheet = Drawing::new(HALF, pitch * count.div_ceil(columns) as f64 + 8.0);
    for head in 0..count {
        let (x, y) = (12.0 + (head % columns) as f64 * (side + 12.0), 8.0 + (head / columns) as f64 * pitch);
        sheet.picture([x, y, side, side * proportion], picture(head));
        let below = (x + side / 2.0, y + side * proportion + 15.0);
        sheet.text(below, LETTERS, Anchor::Middle, Ink::Muted, format!("head {head}"));
    }
    sheet
}

#[cfg(test)]
mod tests {
    use foveate_core::{PatchGrid, Selected};

    use super::*;
    use crate::figure::Shape;

    fn drawn(attention: &Attention<'_>) -> (Vec<String>, Vec<ImageBuf>, usize) {
        let figure = attention_figure(attention, String::new());
        let (mut texts, mut pictures, mut bars) = (vec![], vec![], 0);
        for shape in figure.drawing.shapes {
            match shape {
                Shape::Text { text, .. } => texts.push(text),
                Shape::Picture { image, .. } => pictures.push(image),
                Shape::Rect { ink: Ink::Attention, .. } => bars += 1,
                _ => {}
            }
        }
        (texts, pictures, bars)
    }

    #[test]
    fn every_kind_of_attention_is_drawn() {
        let names: Vec<String> = ["position", "velocity", "angle"].map(String::from).into();
        // AttentionNeuron: named sensors, two queries.
        let weights = [0.1, 0.2, 0.3, 0.0, 0.9, 0.1];
        let neuron = Attention::soft(Tokens::Named(&names), 1, 2, &weights).expect("they fit together");
        let (texts, pictures, bars) = drawn(&neuron);
        assert_eq!((pictures.len(), bars), (0, 3));
        let named: Vec<&String> = texts.iter().filter(|text| names.contains(text)).collect();
        assert_eq!(named, ["velocity", "angle", "position"], "the most important first");

        // The relational module: two heads, nodes to nodes.
        let weights: Vec<f32> = (0..18).map(|i| i as f32 / 18.0).collect();
        let relational = Attention::soft(Tokens::Named(&names), 2, 3, &weights).expect("they fit together");
        let (texts, pictures, _) = drawn(&relational);
        assert_eq!(texts, ["head 0", "head 1"]);
        assert_eq!((pictures.len(), pictures[0].width(), pictures[0].height()), (2, 3, 3));
        assert_ne!(pictures[0], pictures[1]);

        // S3TA: four heads over cells.
        let mut weights = vec![0.0; 24];
        (0..4).for_each(|head| weights[head * 6 + head] = 1.0);
        let cells = Tokens::Cells { rows: 2, columns: 3 };
        let (_, pictures, _) = drawn(&Attention::soft(cells, 4, 1, &weights).expect("they fit together"));
        assert_eq!(pictures.len(), 4);
        let brightest = |image: &ImageBuf| {
            let sums = image.rgb().chunks(3).map(|p| p.iter().map(|&c| u32::from(c)).sum::<u32>());
            sums.enumerate().max_by_key(|&(_, sum)| sum).map(|(at, _)| at)
        };
        for (head, picture) in pictures.iter().enumerate() {
            assert_eq!(brightest(picture), Some(head));
        }

        // AttentionAgent: patches of which some are selected.
        let grid = PatchGrid::tile(4, 4, 2, 2).expect("fits");
        let chosen = Selected { tokens: &[3, 1], ranks: &[1, 0] };
        let agent = Attention::patches(grid, &[0.0, 0.7, 0.1, 0.2], chosen).expect("they fit together");
        let figure = attention_figure(&agent, String::new());
        assert_eq!(drawn(&agent).1.len(), 1);
        let ranks: Vec<String> = figure
            .table
            .csv()
            .lines()
            .skip(1)
            .map(|l| l.rsplit(',').next().unwrap_or("").to_owned())
            .collect();
        assert_eq!(ranks, ["not selected", "0", "not selected", "1"]);
    }
}

use super::*;

fn check_stored(observation: Observation<'_>, words: &str, bytes: u64) {
    let buf = ObservationBuf::from(observation);
    assert_eq!(buf.as_observation(), observation);
    let text = serde_json::to_string(&buf).expect("plain values");
    assert_eq!(serde_json::from_str::<ObservationBuf>(&text).expect("its own"), buf, "{text}");
    let space = observation.space();
    assert_eq!((&*space.describe(), space.bytes()), (words, bytes));
    // Set into a buffer of another kind, and into one of the same kind.
    let mut other = ObservationBuf::Vector(vec![7.0]);
    other.set(observation);
    other.set(observation);
    assert_eq!(other, buf);
}

#[test]
fn every_kind_can_be_stored_and_described() {
    let rgb: Vec<u8> = (0..24).collect();
    let image = Image::new(4, 2, &rgb).expect("sizes agree");
    check_stored(Observation::rgb(image), "a picture of 4x2", 24);
    let stack = PixelShape { frames: 4, height: 2, width: 3, channels: 1 };
    let stack = Pixels::new(stack, &rgb).expect("sizes agree");
    check_stored(Observation::Image(stack), "4 grey pictures of 3x2", 24);
    check_stored(Observation::Vector(&[0.5, -1.0]), "2 numbers", 8);
    let grid = Grid::new(2, 4, 3, &rgb).expect("sizes agree");
    check_stored(Observation::Grid(grid), "a board of 2x4 cells with 3 codes each", 24);
    assert_eq!(grid.cell(1, 3), Some(&[21, 22, 23][..]));
    assert_eq!((grid.cell(2, 0), grid.cell(0, 4)), (None, None));
    let depth = PixelShape { channels: 1, ..PixelShape::rgb(4, 2) };
    let parts = vec![
        (IMAGE, Observation::rgb(image)),
        (DEPTH, Observation::Image(Pixels::new(depth, &rgb[..8]).expect("sizes agree"))),
        (SENSORS, Observation::Vector(&[1.0; 7])),
    ];
    let dict = Observation::Dict(&parts);
    check_stored(dict, "a picture of 4x2 with depth and 7 numbers", 24 + 8 + 28);
    assert_eq!(dict.image(), Some(Pixels::rgb(image)));
    assert_eq!(dict.numbers(), Some(&[1.0; 7][..]));
    assert_eq!(dict.depth().map(|depth| depth.bytes().len()), Some(8));
    assert_eq!((dict.space().picture(), dict.space().numbers()), (Some((4, 2)), 7));
    let named = vec![("mission", Observation::Vector(&[1.0])), (IMAGE, Observation::Grid(grid))];
    let words = "1 numbers (mission) and a board of 2x4 cells with 3 codes each";
    check_stored(Observation::Dict(&named), words, 28);
    assert_ne!(Observation::Dict(&named), dict);
}

#[test]
fn missing_patches_are_a_part_of_their_own() {
    let rgb = [9; 24];
    let image = Image::new(4, 2, &rgb).expect("sizes agree");
    let parts = vec![(IMAGE, Observation::rgb(image)), (PRESENT, Observation::Vector(&[1.0, 0.0]))];
    let dict = Observation::Dict(&parts);
    check_stored(dict, "a picture of 4x2 with missing patches", 24 + 8);
    assert_eq!((dict.present(), dict.numbers()), (Some(&[1.0, 0.0][..]), None));
    assert_eq!(Observation::rgb(image).present(), None);
}

#[test]
fn frames_lie_below_each_other_and_grey_becomes_all_colours() {
    let bytes: Vec<u8> = (1..=8).collect();
    let shape = |frames, channels| PixelShape { frames, height: 1, width: 2, channels };
    let mut scratch = vec![];
    let rgb = |shape, bytes: &[u8], scratch: &mut Vec<u8>| {
        let image = Pixels::new(shape, bytes).expect("sizes agree").to_rgb(scratch);
        ((image.width(), image.height()), image.rgb().to_vec())
    };
    let grey: Vec<u8> = bytes.iter().flat_map(|&b| [b; 3]).collect();
    assert_eq!(rgb(shape(4, 1), &bytes, &mut scratch), ((2, 4), grey));
    let first = [1, 3, 5, 7].iter().flat_map(|&b| [b; 3]).collect();
    assert_eq!(rgb(shape(2, 2), &bytes, &mut scratch), ((2, 2), first));
    assert_eq!(rgb(shape(1, 4), &bytes, &mut scratch), ((2, 1), vec![1, 2, 3, 5, 6, 7]));
    assert_eq!(rgb(shape(1, 3), &bytes[..6], &mut scratch), ((2, 1), bytes[..6].to_vec()));
    let stack = Pixels::new(shape(4, 1), &bytes).expect("sizes agree");
    assert_eq!(
        (stack.frame(0), stack.frame(3), stack.frame(4)),
        (Some(&[1, 2][..]), Some(&[7, 8][..]), None)
    );
    assert_eq!(Pixels::new(shape(3, 1), &bytes), None);
    assert_eq!(Pixels::new(shape(usize::MAX, 2), &bytes), None);
}

#[test]
fn stored_observations_that_lie_about_their_size_are_refused() {
    for text in [
        r#"{"image":{"shape":{"frames":1,"height":2,"width":2,"channels":3},"bytes":[1,2]}}"#,
        r#"{"grid":{"shape":[2,2,2],"codes":[1]}}"#,
        r#"{"dict":[["image",{"grid":{"shape":[9223372036854775807,2,2],"codes":[]}}]]}"#,
    ] {
        assert!(serde_json::from_str::<ObservationBuf>(text).is_err(), "{text}");
    }
}

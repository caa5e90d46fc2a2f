//! `DoomTakeCover`: a game in a worker process, with the wrappers and changes that we apply here.

use foveate_core::{Env, EnvError, ImageBuf};
use foveate_envs::registry::{EnvRequest, WorldDescriptor, WorldError};
use foveate_envs::take_cover::hovering_text::{self, HoveringText};
use foveate_envs::take_cover::variants::Variants;
use foveate_envs::take_cover::{self, TakeCover};
use foveate_film::Face;
use foveate_gym::GymWorld;

use crate::gymnasium;

/// Its entry in [`WORLDS`](crate::WORLDS).
pub(crate) static DESCRIPTOR: WorldDescriptor = take_cover::request::descriptor(make);

fn make(request: &EnvRequest) -> Result<Box<dyn Env>, WorldError> {
    let config = take_cover::request::config(request)?;
    let map = config.variants.change_map().then(|| changed_map(&config.variants)).transpose()?;
    let mut settings = foveate_gym::take_cover::settings(config.picture.screen(), map.as_deref());
    let options = config.process.iter().map(|(name, value)| (&**name, &**value));
    settings.set(options).map_err(WorldError::source_of)?;
    let game = GymWorld::new(gymnasium::start(settings).map_err(WorldError::source_of)?);
    let text = config.variants.hovering_text.then(text_over_the_screen);
    let world = TakeCover::new(Box::new(game), text)?;
    Ok(Box::new(if config.choices { world.with_choices() } else { world }))
}

/// The map included in ViZDoom, with the variants' changes.
fn changed_map(variants: &Variants) -> Result<Vec<u8>, WorldError> {
    let (path, map) = foveate_gym::take_cover::map().map_err(WorldError::source_of)?;
    variants.apply(&map).map_err(|error| {
        let why = format!("{}: {error}; install vizdoom anew", path.display());
        EnvError::Outside { env: take_cover::ID.into(), why }.into()
    })
}

/// The text of the published variant, drawn with our own letters.
fn text_over_the_screen() -> HoveringText {
    /// Height of a capital and pen width, in pixels: as large as the box allows, as bold as in the published
    /// image.
    const LETTERS: (f32, f32) = (33.0, 3.8);
    const WORDS: &str = "Attention Agent";
    let [width, height] = hovering_text::SIZE;
    let mut picture = ImageBuf::black(width, height);
    let face = Face::new(LETTERS.0, LETTERS.1);
    let (x, y) = ((width as f32 - face.width(WORDS)) / 2.0, (height as f32 - LETTERS.0) / 2.0 - 3.0);
    face.write(&mut picture, x, y, WORDS, [255; 3]);
    HoveringText::new(picture.as_image()).expect("its size is that of a text")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_over_the_screen_are_as_large_as_the_published_ones() {
        let text = text_over_the_screen();
        let mut screen = ImageBuf::black(640, 480);
        text.draw(&mut screen);
        let pixels = screen.rgb().as_chunks::<3>().0;
        let letters = || (0..pixels.len()).filter(|&i| pixels[i] == [0, 255, 255]);
        let (left, right) = (letters().map(|i| i % 640).min(), letters().map(|i| i % 640).max());
        assert!(
            (150..165).contains(&left.expect("letters")) && (495..510).contains(&right.expect("letters"))
        );
        // 14.7 % of the pixels in the published picture are not exactly black.
        let share = letters().count() as f64 / (360.0 * 80.0);
        assert!((share - 0.147).abs() < 0.01, "{share}");
    }
}

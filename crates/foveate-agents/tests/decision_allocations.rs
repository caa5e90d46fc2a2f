//! A decision of AttentionNeuron allocates nothing after the first of its episode: on numbers and on pictures, with each
//! head. Neither does one of the classifier of digits, nor a step of its student.

use foveate_agents::attention_neuron::heads::{DenseConfig, HeadConfig};
use foveate_agents::attention_neuron::pictures::{PictureAgent, PictureConfig};
use foveate_agents::attention_neuron::vectors::{VectorAgent, VectorConfig};
use foveate_agents::relational::classifier::{
    Classifier, ClassifierConfig, ClassifierNetwork, ClassifierStudent,
};
use foveate_core::{
    ActContext, Demonstration, Model, Observation, PixelShape, Pixels, Policy, Seed, Student,
};
use foveate_kernels::Level;
use foveate_toy::allocations::{COUNTER, Counter, count};

#[global_allocator]
static ALLOCATOR: Counter = COUNTER;

/// Decides on all observations but the first, and counts.
fn allocations<P: Policy>(agent: &mut P, observations: &[Observation<'_>]) -> usize {
    let numbers = agent.params().len();
    let params: Vec<f32> = (0..numbers).map(|i| (0.06 * (0.37 * i as f64).sin()) as f32).collect();
    agent.set_params(&params).expect("as many as there are");
    let (mut memory, mut context) = (agent.memory(), ActContext::default());
    agent.reset(&mut memory, Seed::root(0));
    let mut act = |observation| agent.act(observation, &mut memory, &mut context).map(|_| ()).expect("fits");
    act(observations[0]);
    count(|| observations[1..].iter().for_each(|&observation| act(observation)))
}

#[test]
fn nothing_is_allocated_after_the_first_decision() {
    let numbers: Vec<f32> = (0..20 * 28).map(|i| (0.7 * i as f32).sin()).collect();
    // Of equal numbers the keys are compared, too.
    let equal = [0.5; 28];
    let pictures: Vec<u8> = (0..8 * 4 * 96 * 96_usize).map(|i| (i * i / 7000 % 251) as u8).collect();
    let dense = HeadConfig::Dense(DenseConfig::default());
    for level in Level::available() {
        for (config, sensors) in [(VectorConfig::cartpole_pi(), 5), (VectorConfig::ant_pi(), 28)] {
            let mut seen: Vec<Observation<'_>> =
                numbers.chunks_exact(sensors).map(Observation::Vector).collect();
            seen.push(Observation::Vector(&equal[..sensors]));
            let mut agent = VectorAgent::new(config).expect("published").with_level(level);
            assert_eq!(allocations(&mut agent, &seen), 0, "{sensors} sensors, {level}");
        }
        for config in [
            PictureConfig::carracing_pi(),
            PictureConfig::puzzle_pong(),
            PictureConfig { head: dense.clone(), ..PictureConfig::default() },
        ] {
            let [width, height] = config.image;
            let shape = PixelShape { frames: config.frames, height, width, channels: 1 };
            let stacks = pictures.chunks_exact(config.frames * width * height).take(4);
            let seen: Vec<Observation<'_>> = stacks
                .map(|bytes| Observation::Image(Pixels::new(shape, bytes).expect("as many bytes")))
                .collect();
            let mut agent = PictureAgent::new(config.clone()).expect("a good one").with_level(level);
            assert_eq!(allocations(&mut agent, &seen), 0, "{:?}, {level}", config.head);
        }
        for network in [ClassifierNetwork::Relational, ClassifierNetwork::Convolutional] {
            let config = ClassifierConfig { network, ..ClassifierConfig::default() };
            let shape = PixelShape { frames: 1, height: 28, width: 28, channels: 1 };
            let digits: Vec<&[u8]> = pictures.chunks_exact(28 * 28).take(3).collect();
            let seen: Vec<Observation<'_>> = digits
                .iter()
                .map(|bytes| Observation::Image(Pixels::new(shape, bytes).expect("as many bytes")))
                .collect();
            let mut agent = Classifier::new(config.clone()).expect("a good one").with_level(level);
            assert_eq!(allocations(&mut agent, &seen), 0, "{network:?}, {level}");
            let mut demonstration =
                Demonstration { actions: vec![0.0; 30], steps: 3, ..Demonstration::default() };
            for digit in &digits {
                demonstration.pictures.push(digit);
            }
            let mut student = ClassifierStudent::new(&config).expect("a good one").with_level(level);
            let mut gradient = vec![0.0; agent.params().len()];
            student.set_params(&agent.params()).expect("as many");
            student.study(&demonstration, 0..3, 0, &mut gradient);
            let allocated = count(|| {
                student.study(&demonstration, 0..3, 0, &mut gradient);
            });
            assert_eq!(allocated, 0, "student, {network:?}, {level}");
        }
    }
}

//! The agent at the edges of its configuration, and what it refuses.

use crate::threads::threads as up_to;
use foveate_agents::config::{ConvConfig, FeatureConfig, HistogramConfig, Scale};
use foveate_agents::registry::{self, AgentConfig, Init};
use foveate_agents::{AttentionAgent, AttentionAgentConfig, Layout};
use foveate_core::{ActContext, Image, ImageBuf, Observation, PixelShape, Pixels, Policy, PolicyError, Seed};
use serde_json::{Value, json};

/// An agent of 12 × 10 pixels, patches of 3 every 2: 5 × 4 patches.
fn small() -> AttentionAgentConfig {
    AttentionAgentConfig { image: [12, 10], patch: 3, stride: 2, top_k: 4, hidden: 5, ..Default::default() }
}

/// A picture of 12 × 10 pixels of many colours.
fn picture() -> ImageBuf {
    let rgb = (0..360_u32).map(|i| (i * i * 31 % 251) as u8).collect();
    ImageBuf::from_rgb(12, 10, rgb).expect("360 bytes")
}

/// One decision of an agent with drawn weights: what the controller was told, and where it looked.
fn look(config: AttentionAgentConfig) -> (Vec<f32>, Vec<u32>) {
    let mut agent = AttentionAgent::new(config).expect("a valid configuration");
    let params = agent.config().initial_params(Init::Torch, Seed::root(1));
    agent.set_params(&params).expect("as many as there are");
    let mut memory = agent.memory();
    let decision = agent
        .act(Observation::rgb(picture().as_image()), &mut memory, &mut ActContext::default())
        .expect("12 x 10 pixels");
    let chosen =
        decision.attention.expect("this agent attends").selected().expect("it selects").tokens.to_vec();
    (memory.inputs().to_vec(), chosen)
}

#[test]
fn parameters_of_the_published_agent() {
    let tensors = AttentionAgent::new(AttentionAgentConfig::default()).expect("valid").tensors();
    let table: Vec<(&str, &[usize])> =
        tensors.iter().map(|t| (t.name.as_str(), t.shape.as_slice())).collect();
    let expected: [(&str, &[usize]); 10] = [
        ("query.bias", &[4]),
        ("query.weight", &[4, 147]),
        ("key.bias", &[4]),
        ("key.weight", &[4, 147]),
        ("lstm.bias_hh", &[64]),
        ("lstm.bias_ih", &[64]),
        ("lstm.weight_hh", &[64, 16]),
        ("lstm.weight_ih", &[64, 20]),
        ("output.bias", &[3]),
        ("output.weight", &[3, 16]),
    ];
    assert_eq!(table, expected);
    assert_eq!(AttentionAgentConfig::default().param_count(), 3667);
}

#[test]
fn layouts_lead_there_and_back() {
    let tensors = AttentionAgentConfig::default().tensors();
    let ours: Vec<f32> = (0..3667_u16).map(f32::from).collect();
    for layout in Layout::ALL {
        let theirs = layout.from_ours(&tensors, &ours).expect("3667 numbers");
        assert_eq!(layout.to_ours(&tensors, &theirs).expect("3667 numbers"), ours, "{layout}");
    }
    assert_eq!(Layout::Sorted.from_ours(&tensors, &ours).expect("3667 numbers"), ours);
    // Where the simplified branch keeps its tensors: query W 0, b 588, key W 592, b 1180, LSTM W_ih 1184, W_hh 2464,
    // b_ih 3488, b_hh 3552, output W 3616, b 3664; on the right, where ours begin.
    let theirs = Layout::Registration.from_ours(&tensors, &ours).expect("3667 numbers");
    let starts = [
        (0, 4),
        (588, 0),
        (592, 596),
        (1180, 592),
        (1184, 2336),
        (2464, 1312),
        (3488, 1248),
        (3552, 1184),
        (3616, 3619),
        (3664, 3616),
    ];
    for (theirs_at, ours_at) in starts {
        assert_eq!(theirs[theirs_at], ours[ours_at], "at {theirs_at}");
    }
    assert!(matches!(
        Layout::Registration.to_ours(&tensors, &ours[1..]),
        Err(PolicyError::ParamCount { wanted: 3667, given: 3666, .. })
    ));
}

#[test]
fn no_weights_means_the_first_patches_and_the_middle_of_the_actions() {
    for (name, frame) in [("drawn", picture()), ("black", ImageBuf::black(12, 10))] {
        let agent = AttentionAgent::new(small()).expect("valid");
        let mut memory = agent.memory();
        let decision = agent
            .act(Observation::rgb(frame.as_image()), &mut memory, &mut ActContext::default())
            .expect("12 x 10 pixels");
        assert_eq!(decision.action, [0.0, 0.5, 0.5], "{name}");
        let attention = decision.attention.expect("this agent attends");
        assert_eq!(attention.selected().expect("it selects").tokens, [0, 1, 2, 3], "{name}");
        assert!(
            attention.weights().iter().all(|v| (v - 1.0).abs() < 1e-6),
            "{name}: {:?}",
            attention.weights()
        );
    }
}

#[test]
fn every_patch_and_the_only_patch() {
    let (inputs, mut chosen) = look(AttentionAgentConfig { top_k: 20, ..small() });
    assert_eq!(inputs.len(), 40);
    chosen.sort_unstable();
    assert_eq!(chosen, (0..20).collect::<Vec<u32>>());
    let (inputs, chosen) = look(AttentionAgentConfig { patch: 10, stride: 3, top_k: 1, ..small() });
    assert_eq!((inputs, chosen), (vec![5.0 / 10.0, 5.0 / 12.0], vec![0]));
}

#[test]
fn an_episode_is_forgotten_and_a_decision_depends_on_the_past() {
    let mut agent = AttentionAgent::new(small()).expect("valid");
    let params = agent.config().initial_params(Init::Torch, Seed::root(2));
    agent.set_params(&params).expect("as many as there are");
    let mut memory = agent.memory();
    let mut act = |fresh: bool| {
        if fresh {
            agent.reset(&mut memory, Seed::root(0));
        }
        let frame = picture();
        agent
            .act(Observation::rgb(frame.as_image()), &mut memory, &mut ActContext::default())
            .expect("12 x 10 pixels")
            .action
            .to_vec()
    };
    let (first, second, again) = (act(true), act(false), act(true));
    assert_ne!(first, second);
    assert_eq!(first, again);
}

#[test]
fn features_are_what_they_are_called() {
    let rgb = picture().rgb().to_vec();
    let histogram = Some(HistogramConfig { bins: 3 });
    let conv = Some(ConvConfig { filters: 2, size: 2, stride: 1, evolved: false, seed: 4 });
    let config = |centre, histogram, conv| AttentionAgentConfig {
        features: FeatureConfig { centre, colour: false, histogram, conv },
        ..small()
    };
    let (centres, chosen) = look(config(true, None, None));
    let (histograms, _) = look(config(false, histogram, None));
    let (convs, _) = look(config(false, None, conv));
    let (all, all_looked_at) = look(config(true, histogram, conv));
    // Which patches are chosen does not depend on what is told about them: their weights come first.
    assert_eq!(chosen, all_looked_at);
    assert_eq!([centres.len(), histograms.len(), convs.len()], [8, 36, 32]);

    for (i, &patch) in chosen.iter().enumerate() {
        let (x, y) = (patch as usize % 5 * 2, patch as usize / 5 * 2);
        let centre = [(y + 1) as f32 / 10.0, (x + 1) as f32 / 12.0];
        assert_eq!(centres[2 * i..2 * i + 2], centre);
        let mut counts = [0.0_f32; 9];
        for (dy, dx, channel) in (0..27).map(|t| (t / 9, t / 3 % 3, t % 3)) {
            let value = rgb[((y + dy) * 12 + x + dx) * 3 + channel];
            // Three bins over 256 values: 0 ..= 85, 86 ..= 170, 171 ..= 255.
            counts[channel * 3 + [86, 171].iter().filter(|&&edge| value >= edge).count()] += 1.0 / 9.0;
        }
        for (got, want) in histograms[9 * i..9 * i + 9].iter().zip(counts) {
            assert!((got - want).abs() < 1e-6, "histogram of patch {patch}: {got} against {want}");
        }
        let told =
            [&centres[2 * i..2 * i + 2], &histograms[9 * i..9 * i + 9], &convs[8 * i..8 * i + 8]].concat();
        assert_eq!(all[19 * i..19 * i + 19], told);
    }
}

#[test]
fn an_evolved_convolution_convolves() {
    let conv = ConvConfig { filters: 2, size: 2, stride: 1, evolved: true, seed: 0 };
    let features = FeatureConfig { centre: false, conv: Some(conv), ..Default::default() };
    let config = AttentionAgentConfig { features, ..small() };
    let tensors = config.tensors();
    let at = tensors.iter().position(|t| t.name == "conv.bias").expect("it is evolved");
    assert_eq!(tensors[at].shape, [2]);
    assert_eq!(tensors[at + 1].shape, [2, 2, 2, 3]);
    let start: usize = tensors[..at].iter().map(foveate_core::TensorShape::len).sum();
    let params = config.initial_params(Init::Torch, Seed::root(1));
    let (bias, weight) = (&params[start..start + 2], &params[start + 2..start + 26]);

    let (told, chosen) = look(config);
    let rgb = picture().rgb().to_vec();
    for (i, &patch) in chosen.iter().enumerate() {
        let (x, y) = (patch as usize % 5 * 2, patch as usize / 5 * 2);
        for (place, filter) in (0..8).map(|n| (n % 4, n / 4)) {
            let (px, py) = (x + place % 2, y + place / 2);
            let mut sum = f64::from(bias[filter]);
            for (t, &w) in weight[filter * 12..filter * 12 + 12].iter().enumerate() {
                let byte = rgb[((py + t / 6) * 12 + px + t / 3 % 2) * 3 + t % 3];
                sum += f64::from(w) * f64::from(byte) / 255.0;
            }
            let got = f64::from(told[8 * i + 4 * filter + place]);
            assert!((got - sum.tanh()).abs() < 1e-6, "patch {patch}, filter {filter}, place {place}: {got}");
        }
    }
}

#[test]
fn divisors() {
    assert_eq!(Scale::SqrtDIn.divisor(147, 4), 147_f64.sqrt());
    assert_eq!(Scale::SqrtD.divisor(147, 4), 2.0);
    assert_eq!(Scale::One.divisor(147, 4), 1.0);
}

/// The message of the error that `config` gets.
#[track_caller]
fn refused(config: &Value) -> String {
    match registry::make("attention-agent", config) {
        Ok(_) => panic!("{config} was accepted"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn impossible_configurations_are_refused_with_a_remedy() {
    let table = [
        (
            json!({"patch": 97}),
            "a patch of 97 px does not fit a picture of 96x96; lower patch or raise image",
        ),
        (
            json!({"top_k": 530}),
            "top_k = 530 but the picture holds only 529 patches; lower top_k, patch or stride",
        ),
        (json!({"top_k": 0}), "top_k is 0"),
        (json!({"patch": 0}), "must be at least 1"),
        (json!({"stride": 0}), "stride is 0"),
        (json!({"image": [0, 96]}), "image width is 0"),
        (json!({"image": [5000, 96]}), "image width is 5000; it must be from 1 to 4096"),
        (json!({"image": [4096, 4096], "patch": 1, "stride": 1}), "raise stride"),
        (json!({"image": [4096, 4096], "patch": 4096, "top_k": 1, "query_dim": 100}), "parameters; at most"),
        (json!({"query_dim": 0}), "query_dim is 0"),
        (json!({"query_dim": 1_000_000_000_u64}), "query_dim is 1000000000"),
        (json!({"query_dim": 100_000}), "query_dim = 100000 for 529 patches is too large"),
        (json!({"hidden": 65_537}), "hidden is 65537"),
        (json!({"hidden": 65_536}), "parameters; at most"),
        (json!({"hidden": -1}), "hidden wants a whole number from 0, such as 16; it was given the number -1"),
        (json!({"actions": []}), "number of action dimensions is 0"),
        (json!({"actions": [[1.0, 1.0]]}), "low must be below high"),
        (json!({"features": {"centre": false}}), "at least one of centre, colour, histogram and conv"),
        (json!({"features": {"histogram": {"bins": 0}}}), "features.histogram.bins is 0"),
        (json!({"features": {"conv": {"size": 8}}}), "features.conv.size is 8; it must be from 1 to 7"),
        (json!({"features": {"conv": {"filters": 0}}}), "features.conv.filters is 0"),
        (json!({"features": {"conv": {"stride": 0}}}), "features.conv.stride is 0"),
        (
            json!({"scale": "sqrt"}),
            "scale wants one of \"sqrt_d_in\", \"sqrt_d\", \"one\"; it was given the text \"sqrt\"; did you mean",
        ),
        (json!({"topk": 5}), "unknown field `topk`"),
        (json!([1]), "agent attention-agent"),
    ];
    for (config, message) in table {
        let got = refused(&config);
        assert!(got.contains(message), "{config}: {got:?} should say {message:?}");
        assert!(!got.contains('\n'), "{config}: one line is enough: {got:?}");
    }
    let unknown = registry::make("attention", &Value::Null).map(|_| ()).expect_err("no such agent");
    assert!(unknown.to_string().contains("attention-agent"), "{unknown}");
}

#[test]
fn wrong_weights_and_wrong_pictures_are_refused() {
    let mut agent = AttentionAgent::new(small()).expect("valid");
    let mut params = vec![0.5; agent.config().param_count()];
    let count = agent.set_params(&params[1..]).expect_err("one is missing").to_string();
    assert!(count.contains("query.bias 4, query.weight 108"), "{count}");
    params[5] = f32::NAN;
    let error = agent.set_params(&params).expect_err("not a number");
    assert!(
        matches!(&error, PolicyError::ParamNotFinite { index: 5, tensor, .. } if tensor == "query.weight")
    );
    assert!(agent.params().iter().all(|&v| v == 0.0), "a refused vector changes nothing");

    let mut memory = agent.memory();
    let wrong = ImageBuf::black(10, 12);
    let error = agent
        .act(Observation::rgb(wrong.as_image()), &mut memory, &mut ActContext::default())
        .map(|_| ())
        .expect_err("10 x 12");
    assert_eq!(
        error.to_string(),
        "the agent was built for a picture of 12x10, the world shows a picture of 10x12"
    );
    let error = agent
        .act(Observation::Vector(&[0.0; 3]), &mut memory, &mut ActContext::default())
        .map(|_| ())
        .expect_err("numbers");
    assert!(error.to_string().contains("3 numbers"), "{error}");
}

#[test]
fn weights_as_large_as_they_come() {
    let mut agent = AttentionAgent::new(small()).expect("valid");
    let params: Vec<f32> =
        (0..agent.config().param_count()).map(|i| if i % 3 == 0 { f32::MAX } else { f32::MIN }).collect();
    agent.set_params(&params).expect("finite");
    let mut memory = agent.memory();
    for _ in 0..3 {
        let frame = picture();
        let decision = agent
            .act(Observation::rgb(frame.as_image()), &mut memory, &mut ActContext::default())
            .expect("12 x 10 pixels");
        let attention = decision.attention.expect("this agent attends");
        assert!(attention.weights().iter().all(|v| v.is_finite()), "{:?}", attention.weights());
        assert!(decision.action.iter().all(|v| v.is_finite()), "{:?}", decision.action);
    }
}

#[test]
fn initial_parameters_are_drawn_as_pytorch_does() {
    let config = AttentionAgentConfig::default();
    let params = config.initial_params(Init::Torch, Seed::root(9));
    assert_eq!(params, config.initial_params(Init::Torch, Seed::root(9)));
    assert_ne!(params, config.initial_params(Init::Torch, Seed::root(10)));
    assert!(config.initial_params(Init::Zeros, Seed::root(9)).iter().all(|&v| v == 0.0));
    let spread =
        |range: std::ops::Range<usize>| params[range].iter().fold(0.0_f32, |most, v| most.max(v.abs()));
    // Queries and keys: 1/sqrt(147); LSTM and output: 1/sqrt(16).
    let (patches, rest) = (spread(0..1184), spread(1184..3667));
    assert!((0.0815..=0.0825).contains(&patches), "{patches}");
    assert!((0.2490..=0.25).contains(&rest), "{rest}");
}

#[test]
fn threads_do_not_show() {
    let rgb = (0..160_u32 * 120 * 3).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let picture = ImageBuf::from_rgb(160, 120, rgb).expect("160 x 120 pixels");
    for voting in [
        json!({ "kernel": "softmax" }),
        json!({ "kernel": "softmax", "relative_error": 0.001 }),
        json!({ "kernel": "softmax_kernel" }),
        json!({ "kernel": "hybrid" }),
    ] {
        let config = json!({ "image": [160, 120], "patch": 2, "stride": 2, "voting": voting });
        let name = "attention-agent";
        let params = registry::initial_params(name, &config, Init::Torch, Seed::root(2)).expect("valid");
        let mut agent = registry::make(name, &config).expect("valid");
        agent.set_params(&params).expect("as many as there are");
        let mut outcomes = [1, 3, 200].map(|threads| {
            agent.set_threads(&up_to(threads));
            let mut copy = agent.boxed_clone();
            let decision = copy
                .act(Observation::rgb(picture.as_image()), &mut ActContext::default())
                .expect("the right size");
            let attention = decision.attention.expect("this agent attends");
            let importance: Vec<u32> = attention.weights().iter().map(|x| x.to_bits()).collect();
            (decision.action.to_vec(), attention.selected().expect("it selects").tokens.to_vec(), importance)
        });
        outcomes.sort_by(|a, b| a.partial_cmp(b).expect("finite"));
        assert!(outcomes[0] == outcomes[2], "{config}");
    }
}

#[test]
fn grey_pictures_and_stacks_are_seen_as_one_tall_picture_in_colours() {
    let config = AttentionAgentConfig { image: [12, 10], ..small() };
    let mut agent = AttentionAgent::new(config).expect("valid");
    let params: Vec<f32> = (0..agent.params().len()).map(|i| (i as f32 * 0.37).sin()).collect();
    agent.set_params(&params).expect("as many as there are");
    let grey: Vec<u8> = (0..12 * 10).map(|i| (i * i % 251) as u8).collect();
    let tall: Vec<u8> = grey.iter().flat_map(|&byte| [byte; 3]).collect();
    let act = |observation: Observation<'_>| {
        let mut memory = agent.memory();
        let mut actions = vec![];
        for _ in 0..3 {
            let decision = agent.act(observation, &mut memory, &mut ActContext::default()).expect("its size");
            let votes = decision.attention.expect("this agent attends").weights().to_vec();
            actions.push((decision.action.to_vec(), votes));
        }
        actions
    };
    let expect = act(Observation::rgb(Image::new(12, 10, &tall).expect("its size")));
    for (frames, height, channels) in [(1, 10, 1), (5, 2, 1), (2, 5, 3), (10, 1, 3)] {
        let shape = PixelShape { frames, height, width: 12, channels };
        let bytes = if channels == 1 { &grey } else { &tall };
        let pixels = Pixels::new(shape, bytes).expect("its size");
        assert_eq!(act(Observation::Image(pixels)), expect, "{shape:?}");
    }
    let other = PixelShape { frames: 1, height: 10, width: 12, channels: 2 };
    let twice = grey.repeat(2);
    let pixels = Pixels::new(other, &twice).expect("its size");
    let mut memory = agent.memory();
    let said = agent.act(Observation::Image(pixels), &mut memory, &mut ActContext::default());
    let said = said.expect_err("two bytes in a pixel").to_string();
    assert!(said.contains("built for a picture of 12x10, the world shows a 2-channel picture"), "{said}");
}

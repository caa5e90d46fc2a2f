//! The games: their names, numbers of actions and reference scores.

use foveate_envs::registry::ReferenceScores;

/// A game.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Game {
    /// Its name as ale-py writes it.
    pub(super) name: &'static str,
    /// How many actions it distinguishes.
    pub(super) actions: usize,
    /// Mean score of random play.
    pub(super) random: f64,
    /// Mean score of a human player.
    pub(super) human: f64,
}

impl Game {
    /// The scores by which its returns are normalised.
    pub(super) const fn scores(&self) -> ReferenceScores {
        ReferenceScores { task: self.name, random: self.random, human: self.human }
    }
}

const fn game(name: &'static str, actions: usize, random: f64, human: f64) -> Game {
    Game { name, actions, random, human }
}

/// The 57 games on which agents are usually compared: name, number of actions, and the scores of random play and of a person,
/// by which those of agents are normalised. The scores are those of the table that DQN Zoo (Quan and Ostrovski 2020) uses: of
/// episodes that begin with 1 to 30 frames of doing nothing and last at most 108,000 frames.
pub(super) const GAMES: [Game; 57] = [
    game("alien", 18, 227.8, 7127.7),
    game("amidar", 10, 5.8, 1719.5),
    game("assault", 7, 222.4, 742.0),
    game("asterix", 9, 210.0, 8503.3),
    game("asteroids", 14, 719.1, 47_388.7),
    game("atlantis", 4, 12_850.0, 29_028.1),
    game("bank_heist", 18, 14.2, 753.1),
    game("battle_zone", 18, 2360.0, 37_187.5),
    game("beam_rider", 9, 363.9, 16_926.5),
    game("berzerk", 18, 123.7, 2630.4),
    game("bowling", 6, 23.1, 160.7),
    game("boxing", 18, 0.1, 12.1),
    game("breakout", 4, 1.7, 30.5),
    game("centipede", 18, 2090.9, 12_017.0),
    game("chopper_command", 18, 811.0, 7387.8),
    game("crazy_climber", 9, 10_780.5, 35_829.4),
    game("defender", 18, 2874.5, 18_688.9),
    game("demon_attack", 6, 152.1, 1971.0),
    game("double_dunk", 18, -18.6, -16.4),
    game("enduro", 9, 0.0, 860.5),
    game("fishing_derby", 18, -91.7, -38.7),
    game("freeway", 3, 0.0, 29.6),
    game("frostbite", 18, 65.2, 4334.7),
    game("gopher", 8, 257.6, 2412.5),
    game("gravitar", 18, 173.0, 3351.4),
    game("hero", 18, 1027.0, 30_826.4),
    game("ice_hockey", 18, -11.2, 0.9),
    game("jamesbond", 18, 29.0, 302.8),
    game("kangaroo", 18, 52.0, 3035.0),
    game("krull", 18, 1598.0, 2665.5),
    game("kung_fu_master", 14, 258.5, 22_736.3),
    game("montezuma_revenge", 18, 0.0, 4753.3),
    game("ms_pacman", 9, 307.3, 6951.6),
    game("name_this_game", 6, 2292.3, 8049.0),
    game("phoenix", 8, 761.4, 7242.6),
    game("pitfall", 18, -229.4, 6463.7),
    game("pong", 6, -20.7, 14.6),
    game("private_eye", 18, 24.9, 69_571.3),
    game("qbert", 6, 163.9, 13_455.0),
    game("riverraid", 18, 1338.5, 17_118.0),
    game("road_runner", 18, 11.5, 7845.0),
    game("robotank", 18, 2.2, 11.9),
    game("seaquest", 18, 68.4, 42_054.7),
    game("skiing", 3, -17_098.1, -4336.9),
    game("solaris", 18, 1236.3, 12_326.7),
    game("space_invaders", 6, 148.0, 1668.7),
    game("star_gunner", 18, 664.0, 10_250.0),
    game("surround", 5, -10.0, 6.5),
    game("tennis", 18, -23.8, -8.3),
    game("time_pilot", 10, 3568.0, 5229.2),
    game("tutankham", 8, 11.4, 167.6),
    game("up_n_down", 6, 533.4, 11_693.2),
    game("venture", 18, 0.0, 1187.5),
    game("video_pinball", 9, 16_256.9, 17_667.9),
    game("wizard_of_wor", 10, 563.5, 4756.5),
    game("yars_revenge", 18, 3092.9, 54_576.9),
    game("zaxxon", 18, 32.5, 9173.3),
];

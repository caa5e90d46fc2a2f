//! The games: their names and reference scores.

/// A game.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Game {
    /// Its name as ale-py writes it.
    pub(super) name: &'static str,
    /// Mean score of random play.
    pub(super) random: f64,
    /// Mean score of a human player.
    pub(super) human: f64,
}

const fn game(name: &'static str, random: f64, human: f64) -> Game {
    Game { name, random, human }
}

/// The 57 games on which agents are usually compared, with the scores by which theirs are normalised: the table that DQN Zoo
/// (Quan and Ostrovski 2020) uses. Both scores are of episodes that begin with 1 to 30 frames of doing nothing and last at
/// most 108,000 frames.
pub(super) const GAMES: [Game; 57] = [
    game("alien", 227.8, 7127.7),
    game("amidar", 5.8, 1719.5),
    game("assault", 222.4, 742.0),
    game("asterix", 210.0, 8503.3),
    game("asteroids", 719.1, 47_388.7),
    game("atlantis", 12_850.0, 29_028.1),
    game("bank_heist", 14.2, 753.1),
    game("battle_zone", 2360.0, 37_187.5),
    game("beam_rider", 363.9, 16_926.5),
    game("berzerk", 123.7, 2630.4),
    game("bowling", 23.1, 160.7),
    game("boxing", 0.1, 12.1),
    game("breakout", 1.7, 30.5),
    game("centipede", 2090.9, 12_017.0),
    game("chopper_command", 811.0, 7387.8),
    game("crazy_climber", 10_780.5, 35_829.4),
    game("defender", 2874.5, 18_688.9),
    game("demon_attack", 152.1, 1971.0),
    game("double_dunk", -18.6, -16.4),
    game("enduro", 0.0, 860.5),
    game("fishing_derby", -91.7, -38.7),
    game("freeway", 0.0, 29.6),
    game("frostbite", 65.2, 4334.7),
    game("gopher", 257.6, 2412.5),
    game("gravitar", 173.0, 3351.4),
    game("hero", 1027.0, 30_826.4),
    game("ice_hockey", -11.2, 0.9),
    game("jamesbond", 29.0, 302.8),
    game("kangaroo", 52.0, 3035.0),
    game("krull", 1598.0, 2665.5),
    game("kung_fu_master", 258.5, 22_736.3),
    game("montezuma_revenge", 0.0, 4753.3),
    game("ms_pacman", 307.3, 6951.6),
    game("name_this_game", 2292.3, 8049.0),
    game("phoenix", 761.4, 7242.6),
    game("pitfall", -229.4, 6463.7),
    game("pong", -20.7, 14.6),
    game("private_eye", 24.9, 69_571.3),
    game("qbert", 163.9, 13_455.0),
    game("riverraid", 1338.5, 17_118.0),
    game("road_runner", 11.5, 7845.0),
    game("robotank", 2.2, 11.9),
    game("seaquest", 68.4, 42_054.7),
    game("skiing", -17_098.1, -4336.9),
    game("solaris", 1236.3, 12_326.7),
    game("space_invaders", 148.0, 1668.7),
    game("star_gunner", 664.0, 10_250.0),
    game("surround", -10.0, 6.5),
    game("tennis", -23.8, -8.3),
    game("time_pilot", 3568.0, 5229.2),
    game("tutankham", 11.4, 167.6),
    game("up_n_down", 533.4, 11_693.2),
    game("venture", 0.0, 1187.5),
    game("video_pinball", 16_256.9, 17_667.9),
    game("wizard_of_wor", 563.5, 4756.5),
    game("yars_revenge", 3092.9, 54_576.9),
    game("zaxxon", 32.5, 9173.3),
];

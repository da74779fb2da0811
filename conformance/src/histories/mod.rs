//! Random histories of CloneSets on in-process clusters: no commit breaks an invariant, and in the end
//! the sets reach their specs.
//!
//! In every second one the manager meets faults besides ([`weather`]).
//!
//! [`random_spec`] is the spec that the user asks for, [`player`] acts on the set now and then, [`judge`] looks at every
//! change afterwards. All follows from a seed, so that a history that went wrong is played again by its number.

pub mod judge;
mod numbers;
mod player;
mod pod;
mod random_spec;
mod story;
mod weather;

use std::time::Duration;

use client_kit::Seed;

use crate::bench::simulate_seed;
use crate::error::Error;
use crate::suite::Simulate;
use player::Player;
use random_spec::Wish;

/// The number of the user's actions in one history.
const STEPS: u64 = 10;
/// The time after which everything has come to rest: a write that no watch delivered is looked up after five minutes, and then
/// there may be as much to do as at the start.
const REST: Duration = Duration::from_secs(600);

/// A history that was played.
#[derive(Debug, Clone)]
pub struct Played {
    /// The violations; empty if all is well.
    pub wrongs: Vec<String>,
    /// How many of the manager's requests, and events for it, were struck by the weather.
    pub struck: u32,
    /// The changes, a line for each.
    pub story: Vec<String>,
}

/// Plays the history of a seed.
///
/// # Errors
/// If its cluster does not start, or refuses a valid request.
pub fn play(seed: u64, simulate: Simulate<'_>) -> Result<Played, Error> {
    simulate_seed(Seed(seed), simulate, async || {
        let mut random = Seed(seed).fork("history").random();
        let mut wish = Wish::random(&mut random);
        let mut player = Player::start(seed).await?;
        player.create(&wish).await?;
        player.weather(weather::faults(&mut Seed(seed).fork("weather").random()));
        for _ in 0..STEPS {
            tokio::time::sleep(Duration::from_millis(random.between(200, 9000))).await;
            player.step(&mut wish, &mut random).await?;
        }
        let struck = player.fair_weather();
        wish.come_to_rest();
        player.ask(wish.spec()).await?;
        tokio::time::sleep(REST).await;
        let history = player.history();
        let mut wrongs = judge::wrongs(&history, &player.deeds);
        wrongs.extend(player.unlike(&wish).await?);
        Ok(Played {
            wrongs,
            struck,
            story: story::of(&history),
        })
    })
}

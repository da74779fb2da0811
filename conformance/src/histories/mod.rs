//! Random histories of sets on in-process clusters: no commit breaks an invariant, and in the end the sets reach their specs.
//!
//! In every second one the manager meets faults besides ([`weather`]).
//!
//! [`wish`] is the spec that the user asks for, [`player`] acts on the set now and then, [`errand`] is a request about any other object,
//! [`deeds`] records the user's deeds. A folder for each kind has that kind's spec and its judge, which looks at every change afterwards;
//! [`commits`] is the part that judges share. All follows from a seed, so that a history that went wrong is played again by its number.

mod broadcastjob;
mod cloneset;
mod commits;
mod daemonset;
mod deeds;
mod errand;
mod imagepulljob;
mod player;
mod pod;
mod podunavailablebudget;
mod resourcedistribution;
mod restarts;
mod sidecarset;
mod statefulset;
mod story;
mod uniteddeployment;
mod weather;
mod wish;
mod workloadspread;

use std::time::Duration;

use client_kit::{Random, Seed};

use crate::bench::simulate_seed;
use crate::error::Error;
use crate::suite::Simulate;
use broadcastjob::BroadcastJobWish;
use cloneset::CloneSetWish;
use daemonset::DaemonSetWish;
use imagepulljob::PullJobsWish;
use player::Player;
use podunavailablebudget::BudgetWish;
use resourcedistribution::DistributionWish;
use restarts::RestartsWish;
use sidecarset::SidecarSetWish;
use statefulset::StatefulSetWish;
use uniteddeployment::UnitedDeploymentWish;
use wish::Wish;
use workloadspread::SpreadWish;

/// The number of the user's actions in one history.
const STEPS: u64 = 10;

/// A kind that has histories.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// BroadcastJobs.
    BroadcastJob,
    /// CloneSets.
    CloneSet,
    /// Advanced DaemonSets.
    DaemonSet,
    /// ImagePullJobs and ImageListPullJobs.
    ImagePullJob,
    /// PodUnavailableBudgets.
    PodUnavailableBudget,
    /// ResourceDistributions.
    ResourceDistribution,
    /// ContainerRecreateRequests.
    Restarts,
    /// SidecarSets.
    SidecarSet,
    /// Advanced StatefulSets.
    StatefulSet,
    /// UnitedDeployments.
    UnitedDeployment,
    /// WorkloadSpreads.
    WorkloadSpread,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::BroadcastJob,
        Self::CloneSet,
        Self::DaemonSet,
        Self::ImagePullJob,
        Self::PodUnavailableBudget,
        Self::ResourceDistribution,
        Self::Restarts,
        Self::SidecarSet,
        Self::StatefulSet,
        Self::UnitedDeployment,
        Self::WorkloadSpread,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::BroadcastJob => "broadcastjob",
            Self::CloneSet => "cloneset",
            Self::DaemonSet => "daemonset",
            Self::ImagePullJob => "imagepulljob",
            Self::PodUnavailableBudget => "podunavailablebudget",
            Self::ResourceDistribution => "resourcedistribution",
            Self::Restarts => "restarts",
            Self::SidecarSet => "sidecarset",
            Self::StatefulSet => "statefulset",
            Self::UnitedDeployment => "uniteddeployment",
            Self::WorkloadSpread => "workloadspread",
        }
    }

    fn wish(self, random: &mut Random) -> Box<dyn Wish> {
        match self {
            Self::BroadcastJob => Box::new(BroadcastJobWish::random(random)),
            Self::CloneSet => Box::new(CloneSetWish::random(random)),
            Self::DaemonSet => Box::new(DaemonSetWish::random(random)),
            Self::ImagePullJob => Box::new(PullJobsWish::random(random)),
            Self::PodUnavailableBudget => Box::new(BudgetWish::random(random)),
            Self::ResourceDistribution => Box::new(DistributionWish::random(random)),
            Self::Restarts => Box::new(RestartsWish::random(random)),
            Self::SidecarSet => Box::new(SidecarSetWish::random(random)),
            Self::StatefulSet => Box::new(StatefulSetWish::random(random)),
            Self::UnitedDeployment => Box::new(UnitedDeploymentWish::random(random)),
            Self::WorkloadSpread => Box::new(SpreadWish::random(random)),
        }
    }
}

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
pub fn play(kind: Kind, seed: u64, simulate: Simulate<'_>) -> Result<Played, Error> {
    simulate_seed(Seed(seed), simulate, async || {
        let mut random = Seed(seed).fork("history").random();
        let mut wish = kind.wish(&mut random);
        let mut player = Player::start(seed, wish.as_ref()).await?;
        player.create(wish.as_ref()).await?;
        player.weather(weather::faults(&mut Seed(seed).fork("weather").random()));
        for _ in 0..STEPS {
            tokio::time::sleep(Duration::from_millis(random.between(200, 9000))).await;
            player.step(wish.as_mut(), &mut random).await?;
        }
        let struck = player.fair_weather();
        wish.come_to_rest();
        if !wish.calm().is_zero() {
            tokio::time::sleep(wish.calm()).await;
        }
        player.ask(wish.spec()).await?;
        tokio::time::sleep(wish.rest()).await;
        let history = player.history();
        let mut wrongs = wish.wrongs(&history, &player.deeds);
        wrongs.extend(player.unlike(wish.as_ref()).await?);
        Ok(Played {
            wrongs,
            struck,
            story: story::of(&history, wish.as_ref()),
        })
    })
}

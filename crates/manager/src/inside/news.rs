//! What nodes tell each other of the cluster's table.

use control::Table;

use super::Inside;
use crate::message::News;

impl Inside {
    /// What is told to whoever lags behind.
    pub fn news(&self) -> News {
        let (table, voters) = (self.agreement.table().encode(), self.agreement.agreed_voters());
        News { leader: self.agreement.leader(), voters, table }
    }

    /// The newest table that this node heard of, a manager or not.
    pub fn news_of_table(&self) -> News {
        News { leader: self.leader, voters: self.identity.voters.clone(), table: self.table().encode() }
    }

    /// A manager knows more, perhaps.
    pub fn adopt(&mut self, news: News) {
        self.leader = news.leader.or(self.leader);
        if news.voters.version > self.identity.voters.version {
            self.identity.voters = news.voters;
        }
        if let Ok(table) = Table::decode(&news.table)
            && table.cluster() == self.identity.cluster
            && table.version() > self.table().version()
        {
            self.identity.table = table;
        }
    }
}

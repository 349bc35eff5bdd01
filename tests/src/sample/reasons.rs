//! Why the sample does what it does: one enum for all its plans, events and conditions.

use windlass::Reasoned;

/// The sample's reasons.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    /// A vault is opened by a password that nobody chose.
    OpensTheVault,
    /// A shard holds part of the vault.
    HoldsAShard,
    /// The shards need the password to be there first.
    WaitsForThePassword,
    /// A vault without shards holds nothing.
    NoShards,
    /// A tenant proves itself by a token.
    ProvesTheTenant,
    /// A tenant must know where its vault is.
    ShowsTheWay,
    /// The tenant's vault is not there.
    WaitsForTheVault(String),
    /// The tenant's vault is there and not open yet.
    WaitsForTheVaultToOpen(String),
    /// The token must be gone before the way in is.
    RevokesTheToken,
    /// The way in goes last.
    ClosesTheWay,
    /// The token is being deleted.
    WaitsForTheRevocation,
}

impl Reasoned for Why {
    fn message(&self) -> String {
        match self {
            Self::OpensTheVault => "the password that opens the vault".to_owned(),
            Self::HoldsAShard => "a part of what the vault holds".to_owned(),
            Self::WaitsForThePassword => "the password is not there yet".to_owned(),
            Self::NoShards => "a vault needs at least one shard".to_owned(),
            Self::ProvesTheTenant => "the token that proves who the tenant is".to_owned(),
            Self::ShowsTheWay => "where the tenant finds its vault".to_owned(),
            Self::WaitsForTheVault(vault) => format!("there is no vault {vault}"),
            Self::WaitsForTheVaultToOpen(vault) => format!("vault {vault} is not open yet"),
            Self::RevokesTheToken => "the token is revoked before the way in is closed".to_owned(),
            Self::ClosesTheWay => "the way in is closed last".to_owned(),
            Self::WaitsForTheRevocation => "the token is still there".to_owned(),
        }
    }
}

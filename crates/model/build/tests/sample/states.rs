//! @generated from sample.proto.

/// The values of `authority.sample.v1.Lamp.state`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, AsExpression)]
#[diesel(sql_type = Text)]
pub enum LampState {
    New,
    #[default]
    Active,
    BurntOut,
}
impl LampState {
    pub const ALL: &'static [Self] = &[Self::New, Self::Active, Self::BurntOut];
    pub const FINAL: &'static [Self] = &[Self::BurntOut];
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Active => "active",
            Self::BurntOut => "burnt_out",
        }
    }
}
impl FromStr for LampState {
    type Err = UnknownState;
    fn from_str(text: &str) -> Result<Self, UnknownState> {
        match text {
            "new" => Ok(Self::New),
            "active" => Ok(Self::Active),
            "burnt_out" => Ok(Self::BurntOut),
            _ => Err(UnknownState),
        }
    }
}
impl Display for LampState {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        to.write_str(self.as_str())
    }
}
impl ToSql<Text, Pg> for LampState {
    fn to_sql<'b>(&'b self, out: &mut Output<'b, '_, Pg>) -> serialize::Result {
        <str as ToSql<Text, Pg>>::to_sql(self.as_str(), out)
    }
}

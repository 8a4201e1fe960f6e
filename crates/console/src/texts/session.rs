//! Signing in and out, and the development identity provider.

texts! {
    // Signing out.
    SIGN_OUT_THERE = "Sign out at the identity provider too"; SIGNED_OUT = "You are signed out";
    NO_DATA_LEFT = "This browser has no data of this session."; STILL_SIGNED_IN = "You are still signed in";
    NOT_ENDED = "The session cannot be ended at the moment. Try again, or close the browser.";
    SEND_LOGOUT_TOKEN = "send one `logout_token`"; LOGOUT_AGAIN = "try again";

    // The choice of an identity provider.
    CHOOSE = "Choose how to sign in"; CHOOSE_PROVIDER = "Choose the identity provider of your organization.";
    PROVIDER_REMOVED = "This service no longer uses the identity provider that you chose.";

    // A failed sign-in.
    NOT_SIGNED_IN = "You are not signed in"; IN_A_FEW_SECONDS = "Try again in a few seconds.";
    CANNOT_BEGIN = "The sign-in cannot begin; try again in a few seconds.";
    CANNOT_STORE = "The session cannot be stored at the moment. Try again in a few seconds.";
    NOT_BEGUN_HERE = "This sign-in was not begun in this browser, or took over 15 minutes.";
    NO_ID_TOKEN = "The identity provider gave no ID token."; TWO_PEOPLE = "The identity provider's two tokens are not of the same person.";
    OTHER_PROVIDER = "The answer did not come from this service's identity provider.";
    refused(error, about) = "The identity provider did not sign you in: {error}. {about}";
    NO_CODE = "The answer has no code."; INVALID_CODE = "The answer's code is invalid.";
    NOT_CONFIRMED = "You had to sign in again, but the identity provider did not confirm it.";
    AGAIN = "Sign in again."; AS_OTHER = "Sign in as somebody else, or ask an administrator of your tenant.";
    ID_TOKEN = "ID token"; ACCESS_TOKEN = "access token";
    token_refused(token, error, remedy) = "The provider's {token} was not accepted: {error}. {remedy}";
    failed(error, remedy) = "{error}. {remedy}";
    CHECK_ISSUER = "The operator of this service can compare `identity.issuer` with the provider's metadata.";
    CHECK_REDIRECT = "Try again. If that does not help, the operator of this service can compare the client's redirect URI at the provider.";
    CHECK_CLIENT = "Try again. If that does not help, the operator of this service can compare `console.client_id` and `console.client_secret` with the client at the provider.";
    CHECK_AUDIENCE = "The operator of this service can compare `identity.audience` and `console.client_id` with the provider's settings: docs/operations/sign-in.md lists the claims of its tokens.";

    // Errors of the identity provider.
    away(error) = "the identity provider is not available: {error}";
    answered(error) = "the identity provider's {error}";
    provider_refused(error) = "the identity provider refused: {error}";
    no_client(error) = "no HTTP client: {error}";
    description_status(status) = "description is answered with {status}";
    description_unreadable(error) = "description cannot be read: {error}";
    other_issuer(issuer) = "description names another issuer, `{issuer}`";
    tokens_unreadable(error) = "tokens cannot be read: {error}";
    status(status) = "it answered {status}"; TOO_LARGE = "answer is over 256 KiB";

    // The development identity provider, and its people.
    DEVELOPMENT = "Development sign-in"; OTHER_PERSON = "Somebody else"; EMAIL = "E-mail address"; ROLE = "Role";
    DEVELOPMENT_WARNING = "This is the development identity provider. It requires no password: every user of this machine can sign in as any person. Production refuses it and uses your own provider.";
    NO_SIGN_IN = "No sign-in"; wrong_request(member) = "The request for a code is wrong at `{member}`. Open the console again.";
    APPROVER = "First approver"; ABOUT_APPROVER = "decides held requests";
    LEGAL = "Legal approver"; ABOUT_LEGAL = "decides requests that also need legal approval";
    FINANCE = "Head of finance"; ABOUT_FINANCE = "owns the agents and may not decide for them";
    ADMINISTRATOR = "Administrator"; ABOUT_ADMINISTRATOR = "approves, stops and makes agents, writes policies, and manages API keys and webhooks";
    AUDITOR = "Auditor"; ABOUT_AUDITOR = "reads everything of the tenant";
    OPERATOR = "Operator"; ABOUT_OPERATOR = "owns the installation and sees every tenant";
}

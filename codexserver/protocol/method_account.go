package protocol

// AuthMode is how the user is signed in.
type AuthMode string

// The ways to be signed in.
const (
	AuthAPIKey  AuthMode = "apikey"
	AuthChatGPT AuthMode = "chatgpt"
)

// LoginAPIKeyParams are the params of loginApiKey.
type LoginAPIKeyParams struct {
	// APIKey is a secret: it is stored in auth.json and never logged.
	APIKey string `json:"apiKey"`
}

// LoginChatGPTResult is the result of loginChatGpt.
type LoginChatGPTResult struct {
	// LoginID names the login while it is open.
	LoginID string `json:"loginId"`
	// AuthURL is for the user's browser.
	AuthURL string `json:"authUrl"`
}

// CancelLoginChatGPTParams are the params of cancelLoginChatGpt.
type CancelLoginChatGPTParams struct {
	// LoginID is that of the [LoginChatGPTResult].
	LoginID string `json:"loginId"`
}

// LoginChatGPTComplete are the params of the notification loginChatGptComplete.
type LoginChatGPTComplete struct {
	// LoginID is that of the [LoginChatGPTResult].
	LoginID string `json:"loginId"`
	// Success is true when the user is signed in.
	Success bool `json:"success"`
	// Error is why the sign-in failed.
	Error string `json:"error,omitzero"`
}

// AuthStatusChange are the params of the notification authStatusChange.
type AuthStatusChange struct {
	// AuthMethod is left out when no user is signed in.
	AuthMethod AuthMode `json:"authMethod,omitzero"`
}

// GetAuthStatusParams are the params of getAuthStatus. Missing members are false.
type GetAuthStatusParams struct {
	// IncludeToken asks for the token, a secret.
	IncludeToken *bool `json:"includeToken,omitzero"`
	// RefreshToken asks to renew the token first.
	RefreshToken *bool `json:"refreshToken,omitzero"`
}

// GetAuthStatusResult is the result of getAuthStatus.
type GetAuthStatusResult struct {
	// AuthMethod is left out when no user is signed in.
	AuthMethod AuthMode `json:"authMethod,omitzero"`
	// AuthToken is a secret. It is left out unless the request asked for it.
	AuthToken string `json:"authToken,omitzero"`
	// RequiresOpenAIAuth is false when the provider needs no login.
	RequiresOpenAIAuth *bool `json:"requiresOpenaiAuth,omitzero"`
}

// UserInfoResult is the result of userInfo.
type UserInfoResult struct {
	// AllegedUserEmail is the address in auth.json, which is not verified; nil, written as
	// null, without one.
	AllegedUserEmail *string `json:"allegedUserEmail"`
}

// GetUserAgentResult is the result of getUserAgent.
type GetUserAgentResult struct {
	// UserAgent names the server, the system and the client.
	UserAgent string `json:"userAgent"`
}

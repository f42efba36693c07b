package protocol

// AuthMode is how the user is signed in.
type AuthMode string

// The ways to be signed in.
const (
	AuthAPIKey  AuthMode = "apikey"
	AuthChatGPT AuthMode = "chatgpt"
)

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

// GetUserAgentResult is the result of getUserAgent. UserAgent names the server, the system and the client.
type GetUserAgentResult struct {
	UserAgent string `json:"userAgent"`
}

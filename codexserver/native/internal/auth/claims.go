package auth

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
)

// claims are the contents of an identity token. Its signature is not checked: it came
// from the server itself, or from the user's own file, and grants nothing.
type claims struct {
	Email   string `json:"email"`
	Profile struct {
		Email string `json:"email"`
	} `json:"https://api.openai.com/profile"`
	Auth struct {
		AccountID string `json:"chatgpt_account_id"`
	} `json:"https://api.openai.com/auth"`
}

// readClaims returns no claims if the token is malformed.
func readClaims(token string) (c claims) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims{}
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(parts[1], "="))
	if err != nil || json.Unmarshal(raw, &c) != nil {
		return claims{}
	}
	return c
}

func email(idToken string) string {
	c := readClaims(idToken)
	if c.Email != "" {
		return c.Email
	}
	return c.Profile.Email
}

func accountID(idToken string) string { return readClaims(idToken).Auth.AccountID }

package auth

import (
	"encoding/base64"
	"strings"

	"github.com/go-json-experiment/json"
)

// claims are what an identity token tells. Its signature is not looked at: it
// came from the server itself, or the user's own file, and nothing is allowed
// on its word.
type claims struct {
	Email   string `json:"email"`
	Profile struct {
		Email string `json:"email"`
	} `json:"https://api.openai.com/profile"`
	Auth struct {
		AccountID string `json:"chatgpt_account_id"`
	} `json:"https://api.openai.com/auth"`
}

// readClaims gives nothing of what is no token.
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

package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

// Method is how the user is signed in.
type Method string

// The methods. "" means signed out.
const (
	MethodAPIKey  Method = "apikey"
	MethodChatGPT Method = "chatgpt"
)

// tokensAge is how long tokens are valid without a refresh.
const tokensAge = 28 * 24 * time.Hour

// Credentials say who is signed in. They hold secrets.
type Credentials struct {
	// Method is "" when no user is signed in. Tokens that were not refreshed for 28 days do not
	// count.
	Method Method
	// Token authorizes requests: the API key or the access token.
	Token string
}

// Read returns the credentials in home's auth.json. An API key takes precedence over tokens.
func Read(home string) (Credentials, error) {
	f, err := load(home)
	switch {
	case err != nil:
		return Credentials{}, err
	case f.APIKey != "":
		return Credentials{MethodAPIKey, f.APIKey}, nil
	case f.Tokens.AccessToken == "" || time.Since(f.LastRefresh) > tokensAge:
		return Credentials{}, nil
	}
	return Credentials{MethodChatGPT, f.Tokens.AccessToken}, nil
}

// APIKey returns the API key in home's auth.json, or "".
func APIKey(home string) (string, error) {
	f, err := load(home)
	return f.APIKey, err
}

// Remove signs out. It also succeeds if no user was signed in.
func Remove(home string) error {
	if err := os.Remove(path(home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("auth: %w", err)
	}
	return nil
}

// file is what this package reads of auth.json.
type file struct {
	APIKey string `json:"OPENAI_API_KEY"`
	Tokens struct {
		AccessToken string `json:"access_token"`
	} `json:"tokens"`
	LastRefresh time.Time `json:"last_refresh"`
}

// maxFile bounds auth.json.
const maxFile = 1 << 20

func path(home string) string { return filepath.Join(home, "auth.json") }

// load reads auth.json. A missing file counts as an empty one.
func load(home string) (f file, err error) {
	data, err := safefile.Read(path(home), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil
	}
	if err != nil {
		return file{}, fmt.Errorf("auth: %w", err)
	}
	if json.Unmarshal(data, &f) != nil { // whose error could quote a secret
		return file{}, fmt.Errorf("auth: %s cannot be read: sign in again with codex login", path(home))
	}
	return f, nil
}

package auth

import (
	"errors"
	"fmt"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// file is auth.json. It keeps members that it does not know.
type file struct {
	APIKey      *string                   `json:"OPENAI_API_KEY"`
	Tokens      *tokens                   `json:"tokens,omitzero"`
	LastRefresh *time.Time                `json:"last_refresh,omitzero"`
	Others      map[string]jsontext.Value `json:",embed"`
}

type tokens struct {
	IDToken      string                    `json:"id_token"`
	AccessToken  string                    `json:"access_token"`
	RefreshToken string                    `json:"refresh_token"`
	AccountID    *string                   `json:"account_id"`
	Others       map[string]jsontext.Value `json:",embed"`
}

// maxFile bounds auth.json.
const maxFile = 1 << 20

func path(home string) string { return filepath.Join(home, "auth.json") }

// load reads auth.json. A missing file counts as an empty one.
func load(home string) (*file, error) {
	data, err := safefile.Read(path(home), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return &file{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("auth: %w", err)
	}
	f := &file{}
	if err := json.Unmarshal(data, f); err != nil {
		return nil, unreadable(home, err)
	}
	return f, nil
}

// unreadable names only the place of the fault in auth.json: the error itself might
// quote a secret.
func unreadable(home string, err error) error {
	var syntax *jsontext.SyntacticError
	var semantic *json.SemanticError
	switch {
	case errors.As(err, &semantic):
		return fmt.Errorf("auth: %s cannot be read at %q", path(home), semantic.JSONPointer)
	case errors.As(err, &syntax):
		return fmt.Errorf("auth: %s: invalid JSON from byte %d on", path(home), syntax.ByteOffset)
	}
	return fmt.Errorf("auth: %s cannot be read", path(home))
}

func (f *file) save(home string) error {
	data, err := json.Marshal(f, jsontext.WithIndent("  "), json.Deterministic(true))
	if err != nil {
		return fmt.Errorf("auth: %s cannot be written", path(home))
	}
	if err := safefile.Write(path(home), data, 0o600); err != nil {
		return fmt.Errorf("auth: %w", err)
	}
	return nil
}

func remove(home string) error {
	if err := os.Remove(path(home)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("auth: %w", err)
	}
	return nil
}

// APIKey returns the API key in home's auth.json, or "".
func APIKey(home string) (string, error) {
	f, err := load(home)
	if err != nil || f.APIKey == nil {
		return "", err
	}
	return *f.APIKey, nil
}

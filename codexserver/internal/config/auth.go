package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-json-experiment/json"
)

// APIKey is the API key of auth.json in home, "" without one.
func APIKey(home string) (string, error) {
	path := filepath.Join(home, "auth.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var auth struct {
		Key *string `json:"OPENAI_API_KEY"`
	}
	if err := json.Unmarshal(data, &auth); err != nil {
		return "", fmt.Errorf("%s cannot be read", path) // the cause might quote a secret
	}
	if auth.Key == nil {
		return "", nil
	}
	return *auth.Key, nil
}

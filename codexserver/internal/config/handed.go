package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/pelletier/go-toml/v2"
)

// handed are patterns of the configuration files other than [SettingsFile]. Other files in
// the folder are state.
var handed = []string{"config.toml", "*.config.toml", "AGENTS.md", "AGENTS.override.md", "rules/*.rules"}

// Hand returns the files of the configuration in home, by name, for a principal's own
// home. It removes settings: the table http, which has the hashes of all tokens, and the
// file, the port and the origin that only the server may use.
func Hand(home string) (map[string][]byte, error) {
	settings, err := readFile(filepath.Join(home, SettingsFile))
	if err != nil {
		return nil, err
	}
	delete(settings, "http")
	if approvals, is := settings["approvals"].(layer); is {
		delete(approvals, "log")
		delete(approvals, "page_port")
		delete(approvals, "page_origin")
	}
	text, err := toml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SettingsFile, err)
	}
	files := map[string][]byte{SettingsFile: text}
	for _, pattern := range handed {
		paths, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := safefile.Read(path, maxFile)
			if err != nil {
				return nil, err
			}
			name, err := filepath.Rel(home, path)
			if err != nil {
				return nil, err
			}
			files[name] = text
		}
	}
	return files, nil
}

// Take writes the files that [Hand] returned to home. It removes those of an earlier
// configuration.
func Take(home string, files map[string][]byte) error {
	for _, pattern := range handed {
		paths, err := filepath.Glob(filepath.Join(home, pattern))
		if err != nil {
			return err
		}
		for _, path := range paths {
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	for name, text := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is not the name of a configuration file", name)
		}
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err // must be gone, because writing follows a link
		}
		if err := safefile.Write(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/pelletier/go-toml/v2"
)

// maxConfiguration is the size of the largest configuration file in bytes.
const maxConfiguration = 4 << 20

// handed returns the configuration files in home other than [config.SettingsFile]. Other files in the folder are state.
func handed(home string) (found []string, err error) {
	for _, pattern := range []string{"config.toml", "*.config.toml", "AGENTS.md", "AGENTS.override.md",
		"rules/*.rules"} {
		dir, pattern := filepath.Split(filepath.FromSlash(pattern))
		dir = filepath.Join(home, dir) // no part of the pattern: it may have characters of one
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		for _, e := range entries {
			if is, err := filepath.Match(pattern, e.Name()); err != nil {
				return nil, err
			} else if is {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	return found, nil
}

// Hand returns the files of the configuration in home, by name, for a principal's own
// home. It removes settings: the table http, which has the hashes of all tokens, and the
// file, the port and the origin that only the server may use.
func Hand(home string) (map[string][]byte, error) {
	settings, err := config.ReadFile(filepath.Join(home, config.SettingsFile))
	if err != nil {
		return nil, err
	}
	delete(settings, "http")
	if approvals, is := settings["approvals"].(map[string]any); is {
		delete(approvals, "log")
		delete(approvals, "page_port")
		delete(approvals, "page_origin")
	}
	text, err := toml.Marshal(settings)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", config.SettingsFile, err)
	}
	files := map[string][]byte{config.SettingsFile: text}
	paths, err := handed(home)
	if err != nil {
		return nil, err
	}
	for _, path := range paths {
		name, err := filepath.Rel(home, path)
		if err != nil {
			return nil, err
		}
		if files[name], err = safefile.Read(path, maxConfiguration); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// Take writes the files that [Hand] returned to home. It removes those of an earlier
// configuration.
func Take(home string, files map[string][]byte) error {
	earlier, err := handed(home)
	if err != nil {
		return err
	}
	for name := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("%q is not the name of a configuration file", name)
		}
		earlier = append(earlier, filepath.Join(home, name)) // must be gone, because writing follows a link
	}
	for _, path := range earlier {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := safefile.Write(path, text, 0o600); err != nil {
			return err
		}
	}
	return nil
}

package config

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Profiles returns the names of the profiles that can be chosen, sorted: the tables of
// config.toml, and the files NAME.config.toml next to it.
func Profiles(home string) ([]string, error) {
	file, err := readFile(filepath.Join(home, "config.toml"))
	if err != nil {
		return nil, err
	}
	tables, _ := file["profiles"].(layer)
	names := slices.Collect(maps.Keys(tables))
	entries, err := os.ReadDir(home)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".config.toml"); ok && name != "" && entry.Type().IsRegular() {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}

// Profile returns the keys of a profile: those of the file NAME.config.toml, which today's Codex uses, or of
// the table profiles.NAME of config.toml, which older ones used.
func Profile(home, name string) (map[string]any, error) {
	if profilePath(home, name) == "" {
		return nil, errors.New("not a name")
	}
	if table, err := profileFile(home, name); table != nil || err != nil {
		return table, err
	}
	file, err := readFile(filepath.Join(home, "config.toml"))
	if err != nil {
		return nil, err
	}
	profiles, _ := file["profiles"].(layer)
	table, ok := profiles[name].(layer)
	if !ok {
		return nil, fmt.Errorf("there is neither the file %s.config.toml nor a table [profiles.%s] of config.toml in %s", name, name, home)
	}
	return table, nil
}

package config

import (
	"errors"
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

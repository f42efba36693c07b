package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/regularfile"
)

// locate adds the file and the line to a fault whose key stands in config.toml
// and nowhere above it. Every fault begins with its dotted key.
func locate(path string, err error, profile string, above ...layer) error {
	key, _, _ := strings.Cut(err.Error(), ": ")
	var missing *MissingError
	if errors.As(err, &missing) {
		key = missing.Key
	}
	segments, splitErr := splitKey(key)
	if splitErr != nil || slices.ContainsFunc(above, func(l layer) bool { return holds(l, segments) }) {
		return err
	}
	doc, readErr := regularfile.Read(path, maxFile)
	if readErr != nil {
		return err
	}
	line := 0
	if profile != "" {
		line = keyLine(doc, append([]string{"profiles", profile}, segments...))
	}
	if line == 0 {
		line = keyLine(doc, segments)
	}
	if line == 0 {
		return err
	}
	return fmt.Errorf("%s:%d: %w", path, line, err)
}

// holds reports whether a layer sets the key or a part of it.
func holds(l layer, segments []string) bool {
	for _, s := range segments {
		v, ok := l[s]
		if !ok {
			return false
		}
		if l, ok = v.(layer); !ok {
			return true
		}
	}
	return true
}

// keyLine is the line that sets a key, or what it is a part of; 0 for none.
func keyLine(doc []byte, path []string) int {
	l, err := parseLayout(doc)
	if err != nil {
		return 0
	}
	for _, s := range l.sections {
		for _, e := range s.entries {
			if begins(path, e.path) {
				return 1 + bytes.Count(doc[:e.start], []byte("\n"))
			}
		}
	}
	return 0
}

// theirKeys are keys of Codex that the native engine has no use for.
var theirKeys = []string{
	"chatgpt_base_url", "disable_response_storage", "experimental_resume", "experimental_use_exec_command_tool",
	"experimental_use_rmcp_client", "experimental_use_unified_exec_tool", "features", "file_opener", "forced_chatgpt_workspace_id", "forced_login_method", "history", "instructions", "mcp_oauth_credentials_store",
	"model_max_output_tokens", "model_reasoning_summary_format", "notice", "otel", "preferred_auth_method", "profile",
	"profiles", "projects", "review_model", "shell_environment_policy", "tui", "windows_wsl_setup_acknowledged",
}

// Unknown are the keys of config.toml in home that mean nothing here, each with
// file and line: they may be misspelt.
func Unknown(home string) []string {
	path := filepath.Join(home, "config.toml")
	file, err := readFile(path)
	if err != nil {
		return nil // the file's own fault is told elsewhere
	}
	doc, err := regularfile.Read(path, maxFile)
	if err != nil {
		return nil
	}
	var found []string
	note := func(segments ...string) {
		found = append(found, fmt.Sprintf("%s:%d: %s", path, keyLine(doc, segments), joinKey(segments)))
	}
	known := append(members(reflect.TypeFor[Config]()), theirKeys...)
	for _, key := range slices.Sorted(maps.Keys(file)) {
		if !slices.Contains(known, key) {
			note(key)
		}
	}
	if profiles, ok := file["profiles"].(layer); ok {
		for _, name := range slices.Sorted(maps.Keys(profiles)) {
			profile, _ := profiles[name].(layer)
			for _, key := range slices.Sorted(maps.Keys(profile)) {
				if !slices.Contains(known, key) {
					note("profiles", name, key)
				}
			}
		}
	}
	providers, _ := file["model_providers"].(layer)
	for _, id := range slices.Sorted(maps.Keys(providers)) {
		provider, _ := providers[id].(layer)
		for _, key := range slices.Sorted(maps.Keys(provider)) {
			if !slices.Contains(members(reflect.TypeFor[Provider]()), key) {
				note("model_providers", id, key)
			}
		}
	}
	return found
}

// members are the keys of a table.
func members(t reflect.Type) []string {
	var names []string
	for field := range t.Fields() {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			names = append(names, name)
		}
	}
	return names
}

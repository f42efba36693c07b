package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// codexBundle is the schema of a Codex.
type codexBundle struct {
	all, stable []byte // with and without what is experimental, members sorted
	version     string
}

// codexSchema asks a Codex for its schema.
func codexSchema(ctx context.Context, codex string) (b codexBundle, err error) {
	dir, err := os.MkdirTemp("", "gen-codex-")
	if err != nil {
		return b, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	ctx, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	ask := func(args ...string) (string, error) {
		cmd := exec.CommandContext(ctx, codex, args...)
		cmd.Env = append(os.Environ(), "CODEX_HOME="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("%s %s: %w: %s", codex, strings.Join(args, " "), err, bytes.TrimSpace(stderr.Bytes()))
		}
		return strings.TrimSpace(string(out)), nil
	}
	if b.version, err = ask("--version"); err != nil {
		return b, err
	}
	for to, args := range map[*[]byte][]string{&b.all: {"--experimental"}, &b.stable: nil} {
		folder := filepath.Join(dir, strings.Join(append(args, "schema"), ""))
		if _, err := ask(append([]string{"app-server", "generate-json-schema", "--out", folder}, args...)...); err != nil {
			return b, err
		}
		text, err := os.ReadFile(filepath.Join(folder, "codex_app_server_protocol.schemas.json"))
		if err != nil {
			return b, err
		}
		var tree any
		if err := json.Unmarshal(text, &tree); err != nil {
			return b, fmt.Errorf("%s: %w", codex, err)
		}
		*to = []byte(compact(tree)) // Codex writes the members in any order
	}
	return b, nil
}

// recordCodex writes where the schema comes from, and what the package uses that the stable schema
// does not have, into the file SOURCE.
func (r refresher) recordCodex(from codexBundle) error {
	stable, err := r.look(from.stable)
	if err != nil {
		return err
	}
	var experimental []string
	for _, problem := range stable.problems {
		if place, ok := strings.CutSuffix(problem.Error(), " is gone"); ok {
			place, _, _ = strings.Cut(place, ": ")
			experimental = append(experimental, place)
		}
	}
	slices.Sort(experimental)
	return os.WriteFile(filepath.Join(r.out, "SOURCE"), fmt.Appendf(nil, `repository    https://github.com/openai/codex
version       %s
source        codex app-server generate-json-schema, with and without --experimental
sha256        %x (members sorted)
stable        %x
experimental  %s
`, from.version, sha256.Sum256(from.all), sha256.Sum256(from.stable), strings.Join(slices.Compact(experimental), " ")), 0o644)
}

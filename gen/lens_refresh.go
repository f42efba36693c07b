package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// user is a package that uses a part of a schema.
type user struct {
	uses   string // the file that says what
	schema string // the file with the structure of that part
	out    string // the package's folder
	report io.Writer
}

// generate returns the generated files by name.
func (u user) generate(usage usage, definitions map[string]any) (map[string][]byte, error) {
	l := look(usage, definitions)
	if err := errors.Join(l.problems...); err != nil {
		return nil, err
	}
	out, err := filepath.Abs(u.out)
	if err != nil {
		return nil, err
	}
	return emitUsage(l, out, filepath.Base(u.schema)+" and "+filepath.Base(u.uses))
}

// run writes the package. If codex is not "", it takes the schema of that program first: it reports
// what changed, and writes nothing if the package cannot use the new schema as it is.
func (u user) run(ctx context.Context, codex string, check, dryRun bool) error {
	text, err := os.ReadFile(u.uses)
	if err != nil {
		return err
	}
	usage, err := readUsage(text)
	if err != nil {
		return err
	}
	old := map[string]any{}
	text, err = os.ReadFile(u.schema)
	if err == nil {
		old, err = bundleOf(text)
	}
	if err != nil && (codex == "" || !errors.Is(err, os.ErrNotExist)) {
		return err
	}
	if codex == "" {
		files, err := u.generate(usage, old)
		if err != nil {
			return err
		}
		return write(u.out, files, check)
	}
	from, err := codexSchema(ctx, codex)
	if err != nil {
		return err
	}
	kept, err := u.refresh(usage, old, from.all)
	if err != nil || dryRun {
		return err
	}
	files, err := u.generate(usage, kept)
	if err != nil {
		return err
	}
	if files[filepath.Base(u.schema)], err = formatSchema(map[string]any{"definitions": kept}); err != nil {
		return err
	}
	files["SOURCE"] = from.source(experimental(look(usage, from.all), from.stable))
	return write(u.out, files, false)
}

// refresh reports what changed for the package between two schemas. It returns the part of the
// new one that the package uses, or an error that names each place where the package does not fit.
func (u user) refresh(usage usage, old, new map[string]any) (map[string]any, error) {
	before, after := look(usage, old), look(usage, new)
	kept := after.prune()
	if err := checkKeywords(map[string]any{"definitions": kept}, "#"); err != nil {
		return nil, err
	}
	if at := proseLeft(kept, "#"); at != "" {
		return nil, fmt.Errorf("%s: a text is left although all prose keywords were dropped", at)
	}
	lines := before.changes(before.prune(), kept)
	fmt.Fprintf(u.report, "changes for this package: %d\n", len(lines))
	for _, line := range lines {
		fmt.Fprintf(u.report, "  %s\n", line)
	}
	return kept, errors.Join(after.problems...)
}

// codexBundle is the schema of a Codex.
type codexBundle struct {
	all, stable map[string]any // with and without what is experimental
	version     string
	sum         [2]string
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
	for i, args := range [][]string{{"--experimental"}, nil} {
		to := filepath.Join(dir, fmt.Sprint(i))
		if _, err := ask(append([]string{"app-server", "generate-json-schema", "--out", to}, args...)...); err != nil {
			return b, err
		}
		text, err := os.ReadFile(filepath.Join(to, "codex_app_server_protocol.schemas.json"))
		if err != nil {
			return b, err
		}
		definitions, err := bundleOf(text)
		if err != nil {
			return b, err
		}
		b.sum[i] = fmt.Sprintf("%x", sha256.Sum256(canonicalJSON(text)))
		if i == 0 {
			b.all = definitions
		} else {
			b.stable = definitions
		}
	}
	return b, nil
}

// canonicalJSON returns a JSON text with sorted members: Codex writes them in any order.
func canonicalJSON(text []byte) []byte {
	var tree any
	if json.Unmarshal(text, &tree) != nil {
		return text
	}
	return []byte(compact(tree))
}

// experimental lists what a package uses and only the experimental schema has.
func experimental(l *lens, stable map[string]any) (places []string) {
	for union, methods := range map[string]map[string]string{allCalls: l.Calls, allAsks: l.Asks, allNotes: l.Notes} {
		known := methodsOf(stable, union)
		for method := range methods {
			if _, ok := known[method]; !ok {
				places = append(places, method)
			}
		}
	}
	for source, members := range l.used {
		definition, tag, isArm := strings.Cut(source, ":")
		known := maps.Clone(objectMembers(stable[definition]))
		if isArm {
			_, arm := armOf(stable[definition], tag)
			if known == nil {
				known = map[string]any{}
			}
			maps.Copy(known, objectMembers(arm))
		}
		if len(known) == 0 {
			continue // its method is experimental
		}
		for name := range members {
			if known[name] == nil {
				places = append(places, source+"/"+name)
			}
		}
	}
	slices.Sort(places)
	return places
}

// source returns the record of where a schema comes from.
func (b codexBundle) source(experimental []string) []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "repository    https://github.com/openai/codex\nversion       %s\nsource        codex app-server generate-json-schema, with and without --experimental\nsha256        %s (members sorted)\nstable        %s\nexperimental  %s\n",
		b.version, b.sum[0], b.sum[1], strings.Join(experimental, " "))
	return []byte(text.String())
}

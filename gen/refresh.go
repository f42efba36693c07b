package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// maxSchema is the largest schema that is read, in bytes: about 20 times today's size.
const maxSchema = 4 << 20

// upstreams maps the file name of a schema to its place in upstream's repository.
var upstreams = map[string]struct{ repository, path string }{
	"schema.json": {"https://github.com/modelcontextprotocol/modelcontextprotocol", "schema/%s/schema.json"}, // by version
	"tasks.json":  {"https://github.com/modelcontextprotocol/ext-tasks", "schema/draft/schema.json"},
}

var (
	versionFolder = regexp.MustCompile(`^(\d{4}-\d{2}-\d{2}|draft)$`)
	commitHash    = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
)

// refresher replaces the project's schema by a new one from upstream.
type refresher struct {
	project
	commit string // upstream's commit, "" if the URL contains it
	dryRun bool
	now    time.Time
	report io.Writer
}

// refresh reads the schema at source, a file or a URL. It reports the changes in the schema
// and in the Go API, then writes the schema, its origin and the generated types. A schema
// of another version gets its own folders and starts with a copy of the project's
// deviations. For the schema of an extension, whose file is not named schema.json, it
// writes no types: go generate does.
func (r refresher) refresh(ctx context.Context, source string) error {
	text, err := readSource(ctx, source)
	if err != nil {
		return err
	}
	old, err := os.ReadFile(r.schema)
	if err != nil {
		return err
	}
	from := r.project
	version, isVersion := filepath.Base(filepath.Dir(r.schema)), filepath.Base(filepath.Dir(source))
	if isVersion != version && versionFolder.MatchString(isVersion) && !r.isExtension() {
		r.project = from.of(isVersion)
	}
	stripped, err := r.compare(old, text)
	if err != nil {
		return err
	}
	if r.dryRun {
		return nil
	}
	files := make(map[string][]byte)
	if !r.isExtension() {
		if files, err = r.generate(stripped); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(r.schema), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.schema, stripped, 0o644); err != nil {
		return err
	}
	if err := r.copyLedger(from); err != nil {
		return err
	}
	if err := r.record(source, text); err != nil {
		return err
	}
	return write(r.out, files, false)
}

// of returns the project for another version, in a folder next to p's.
func (p project) of(version string) project {
	out := p.out // the base package, in which the others are
	if p.base == "" {
		p.base = p.schema
	} else {
		out = filepath.Dir(p.out)
	}
	return project{
		schema: filepath.Join(filepath.Dir(filepath.Dir(p.schema)), version, "schema.json"),
		base:   p.base,
		out:    filepath.Join(out, "v"+strings.ReplaceAll(version, "-", "")),
	}
}

// isExtension reports whether the schema is that of an extension.
func (p project) isExtension() bool { return filepath.Base(p.schema) != "schema.json" }

// copyLedger copies the project's deviations to a new version.
func (r refresher) copyLedger(from project) error {
	const ledger = "deviations.json"
	to := filepath.Join(filepath.Dir(r.schema), ledger)
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(filepath.Dir(from.schema), ledger))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(to, text, 0o644)
}

func readSource(ctx context.Context, source string) ([]byte, error) {
	var r io.ReadCloser
	if strings.HasPrefix(source, "http://") || strings.HasPrefix(source, "https://") {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, source, nil)
		if err != nil {
			return nil, err
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != http.StatusOK {
			return nil, errors.Join(fmt.Errorf("%s: %s", source, resp.Status), resp.Body.Close())
		}
		r = resp.Body
	} else {
		f, err := os.Open(source)
		if err != nil {
			return nil, err
		}
		r = f
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxSchema+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source, err)
	}
	if len(text) > maxSchema {
		return nil, fmt.Errorf("%s: larger than %d bytes", source, maxSchema)
	}
	return text, nil
}

// compare reports the differences between the old schema file and upstream's new one. It
// returns the new one with our descriptions instead of upstream's prose.
func (r refresher) compare(old, upstream []byte) ([]byte, error) {
	var was, is any
	if err := json.Unmarshal(old, &was); err != nil {
		return nil, fmt.Errorf("%s: %w", r.schema, err)
	}
	if err := json.Unmarshal(upstream, &is); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	if err := checkKeywords(is, "#"); err != nil {
		return nil, err
	}
	is = strip(is)
	if at := proseLeft(is, "#"); at != "" {
		return nil, fmt.Errorf("%s: a text is left although all prose keywords were dropped", at)
	}
	r.list("schema", diffSchemas(was, is))
	keepDescriptions(was, is)
	stripped, err := formatSchema(is)
	if err != nil {
		return nil, err
	}
	if r.isExtension() {
		return stripped, nil // its types are generated with those of the core schema
	}
	oldModel, err := r.model(old)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.schema, err)
	}
	newModel, err := r.model(stripped)
	if err != nil {
		return nil, err
	}
	r.list("Go API", diffAPI(oldModel, newModel))
	r.list("without a description", undescribed(newModel))
	return stripped, nil
}

func modelOf(text []byte, extensions ...[]byte) (*model, error) {
	schema, err := parseSchema(text, extensions...)
	if err != nil {
		return nil, err
	}
	return buildModel(schema)
}

func (r refresher) list(title string, lines []string) {
	fmt.Fprintf(r.report, "%s: %d\n", title, len(lines))
	for _, line := range lines {
		fmt.Fprintf(r.report, "  %s\n", line)
	}
}

// record writes the origin of the schema into the file SOURCE next to it, or SOURCE.<name>
// for an extension.
func (r refresher) record(source string, upstream []byte) error {
	name := filepath.Base(r.schema)
	from, ok := upstreams[name]
	if !ok {
		return fmt.Errorf("no repository is known for %s", name)
	}
	if strings.Contains(from.path, "%s") {
		from.path = fmt.Sprintf(from.path, filepath.Base(filepath.Dir(r.schema)))
	}
	file := filepath.Join(filepath.Dir(r.schema), "SOURCE")
	if r.isExtension() {
		file += "." + strings.TrimSuffix(name, ".json")
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(upstream))
	isFile, commit := !strings.Contains(source, "://"), r.commit
	if commit == "" && !isFile {
		commit = commitHash.FindString(source)
	}
	switch old, err := os.ReadFile(file); {
	case commit == "" && err == nil && strings.Contains(string(old), sum):
		return nil // the record of the same schema is there, with its commit
	case commit == "":
		fmt.Fprintln(r.report, "upstream's commit is not known: pass it with -commit")
		commit = "not known"
		if isFile {
			source = "a file"
		}
	case isFile:
		source = from.repository + "/blob/" + commit + "/" + from.path
	}
	text := fmt.Sprintf(`repository  %s
commit      %s
source      %s
read        %s
sha256      %s
`, from.repository, commit, source, r.now.UTC().Format(time.DateOnly), sum)
	return os.WriteFile(file, []byte(text), 0o644)
}

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
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
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
	test   func(out string) error // runs the tests of the new package, if not nil
	was    *model                 // of the schema that is there, nil if nobody has made it
}

// refresh reads the schema at source, a file or a URL. It reports the changes in the schema and in the Go API, then writes the schema, its origin
// and the generated types. A schema of another version gets its own folders and starts with copies of
// the project's deviations, extensions and files that are written by hand. For the schema of an
// extension, whose file is not named schema.json, it writes no types: go generate does.
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
		if _, err := os.Stat(r.schema); err == nil {
			return fmt.Errorf("%s is there: refresh it with the flags -schema, -extension, -base and -out of its own package", r.schema)
		}
	}
	stripped, err := r.compare(old, text)
	if err != nil {
		return err
	}
	if r.isExtension() {
		err = r.checkCopies(stripped)
	} else {
		r.followed, err = r.compareModels(old, stripped)
	}
	if err != nil {
		return err
	}
	if r.dryRun {
		return nil
	}
	var files map[string][]byte
	if !r.isExtension() {
		if files, err = r.generate(stripped); err != nil { // before anything is written
			return err
		}
	}
	extensions := r.extensions
	if err := r.copyFrom(from); err != nil {
		return err
	}
	if !slices.Equal(r.extensions, extensions) { // the files say where they are
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
	for _, name := range r.extensions {
		if text, ok := r.followed[filepath.Base(name)]; ok {
			if err := os.WriteFile(name, text, 0o644); err != nil {
				return err
			}
		}
	}
	if err := r.record(source, text); err != nil {
		return err
	}
	if err := write(r.out, files, false); err != nil || r.test == nil || r.isExtension() {
		return err
	}
	return r.test(r.out)
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
		schema:     filepath.Join(filepath.Dir(filepath.Dir(p.schema)), version, "schema.json"),
		extensions: p.extensions, // until they are copied
		base:       p.base,
		out:        filepath.Join(out, "v"+strings.ReplaceAll(version, "-", "")),
	}
}

// isExtension reports whether the schema is that of an extension.
func (p project) isExtension() bool { return filepath.Base(p.schema) != "schema.json" }

// copyFrom copies to a new version what it starts with: the deviations and extensions of the
// other version, and the files of its package that are written by hand, with their versions. The base
// package decodes less strictly than each other one, so its ledger fits no other version: a version
// that starts with it gets the ledger above the versions' folders.
func (r *refresher) copyFrom(from project) error {
	schemas, old := filepath.Dir(r.schema), filepath.Dir(from.schema)
	if schemas == old {
		return nil
	}
	names := []string{filepath.Join(old, "deviations.json")}
	if from.base == "" {
		names[0] = filepath.Join(filepath.Dir(old), "deviations.json")
	}
	for i, name := range from.extensions {
		names = append(names, name, filepath.Join(old, "SOURCE."+strings.TrimSuffix(filepath.Base(name), ".json")))
		r.extensions = append(r.extensions[:i:i], filepath.Join(schemas, filepath.Base(name)))
	}
	for _, name := range names {
		if err := copyFile(filepath.Join(schemas, filepath.Base(name)), name); err != nil {
			return err
		}
	}
	if from.base == "" {
		return nil // the files of the base package are for every version
	}
	names, err := filepath.Glob(filepath.Join(from.out, "*.go"))
	if err != nil {
		return err
	}
	for _, name := range names {
		if base := filepath.Base(name); !strings.HasPrefix(base, "zz_") && !strings.HasSuffix(base, "_test.go") {
			err = errors.Join(err, copyFile(filepath.Join(r.out, base), name,
				filepath.Base(old), filepath.Base(schemas), "package "+filepath.Base(from.out), "package "+filepath.Base(r.out),
				"Package "+filepath.Base(from.out), "Package "+filepath.Base(r.out)))
		}
	}
	return err
}

// copyFile copies a file that there is, unless the new one is there, and replaces old texts by new
// ones.
func copyFile(to, from string, oldnew ...string) error {
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	text, err := os.ReadFile(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	return os.WriteFile(to, []byte(strings.NewReplacer(oldnew...).Replace(string(text))), 0o644)
}

// runTests runs the tests of the package in a folder.
func runTests(out string) error {
	cmd := exec.Command("go", "test", ".")
	cmd.Dir, cmd.Stdout, cmd.Stderr = out, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the tests of %s: %w", out, err)
	}
	return nil
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
	} else if err := json.Unmarshal(upstream, &is); err != nil {
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
	return stripped, nil
}

// compareModels reports the differences between the Go types of the old schema and those of the new
// one. It returns the texts of the extensions whose copies of definitions follow the new schema.
func (r refresher) compareModels(old, stripped []byte) (map[string][]byte, error) {
	oldModel, err := r.was, error(nil)
	if oldModel == nil {
		oldModel, err = r.model(old)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.schema, err)
	}
	if r.followed, err = r.follow(old, stripped); err != nil {
		return nil, err
	}
	newModel, err := r.model(stripped)
	if err != nil {
		return nil, err
	}
	r.list("Go API", diffAPI(oldModel, newModel))
	r.list("without a description", undescribed(newModel))
	lost, unsent, err := checkRows(oldModel, newModel)
	if len(lost) > 0 {
		r.list("rows of gen/tables.go that no longer apply", lost)
	}
	if len(unsent) > 0 {
		r.list("messages that no union has", unsent)
	}
	return r.followed, err
}

// modelOf returns the model of a schema of the Model Context Protocol.
func modelOf(text []byte, extensions ...[]byte) (*model, error) {
	return modelFrom(true, text, extensions...)
}

func modelFrom(mcp bool, text []byte, extensions ...[]byte) (*model, error) {
	schema, err := parseSchema(mcp, text, extensions...)
	if err != nil {
		return nil, err
	}
	m, err := buildModel(schema)
	switch {
	case err == nil:
		m.ignored = schema.ignored
		return m, nil
	case mcp:
		return nil, err // the place may be a member that the tables restore
	}
	return nil, schema.existing(err)
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

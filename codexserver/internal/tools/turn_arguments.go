package tools

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/go-json-experiment/json/jsontext"
)

// turnArguments are the arguments of a turn, which codex and codex-reply share.
type turnArguments struct {
	Effort       protocol.ReasoningEffort `json:"effort"`
	OutputSchema stdjson.RawMessage       `json:"output-schema"`
	Images       []string                 `json:"images"`
	Budget       *turn.Budget             `json:"budget"`

	schema *outputschema.Schema // set by checkTurn if there is one
}

// anEffort matches any possible effort, because models have efforts that we do not know.
var anEffort = lazyregexp.Regexp{Text: `^[a-z0-9_-]{1,32}$`}

func (a *turnArguments) checkTurn() (err error) {
	if a.Effort != "" && !anEffort.Get().MatchString(string(a.Effort)) {
		return errors.New("argument /effort: want a word such as low or high; codex-models lists what the model takes")
	}
	if len(a.Images) > maxImages {
		return fmt.Errorf("argument /images: %d are more than %d", len(a.Images), maxImages)
	}
	if string(a.OutputSchema) == "null" {
		a.OutputSchema = nil
	}
	if a.OutputSchema != nil {
		if a.schema, err = outputschema.Compile(a.OutputSchema); err != nil {
			return fmt.Errorf("argument /output-schema: %w", err)
		}
	}
	return checkBudget(a.Budget)
}

// bound gives the turn its budget and the schema of its answer.
func (a *turnArguments) bound(t *Turn) {
	t.resume.Budget, t.resume.Schema, t.form.schema = a.Budget, jsontext.Value(a.OutputSchema), a.schema
}

// input returns the input of a turn. Paths of images are relative to cwd, and must lie in
// the bounds.
func (a *turnArguments) input(prompt, cwd string, b bounds) (protocol.TurnInput, error) {
	items := protocol.TextInput(prompt)
	left := int64(maxImageBytes)
	for i, image := range a.Images {
		url, n, err := imageURL(cwd, image, left, b)
		if err != nil {
			return protocol.TurnInput{}, fmt.Errorf("argument /images/%d: %w", i, err)
		}
		left -= n
		items = append(items, protocol.InputItem{Type: protocol.InputImage, ImageURL: url})
	}
	return protocol.TurnInput{Items: items, Effort: a.Effort, OutputSchema: a.OutputSchema, MaxTokens: maxTokens(a.Budget)}, nil
}

// maxRoots is how many folders a call may make writable.
const maxRoots = 32

// absolute makes paths absolute. They are relative to cwd.
func absolute(cwd string, paths []string) []string {
	var all []string
	for _, path := range paths {
		if !filepath.IsAbs(path) {
			path = filepath.Join(cwd, path)
		}
		all = append(all, filepath.Clean(path))
	}
	return all
}

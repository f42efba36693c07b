package tools

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/turn"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/outputschema"
	"github.com/go-json-experiment/json/jsontext"
)

// turnArguments are the arguments of a turn, which codex and codex-reply share.
type turnArguments struct {
	Budget       *turn.Budget       `json:"budget" about:"Of this turn. It stops there with what it has; codex-reply continues."`
	OutputSchema stdjson.RawMessage `json:"output-schema" about:"JSON schema of the answer, which the result then has as output."`
	Check        string             `json:"check" about:"Command that shows that the task is done, such as go test ./...; while it fails, Codex goes on, three tries in all."`
	Images       []string           `json:"images" about:"Shown to the model: paths or data URLs of PNG, JPEG, GIF or WebP."`
}

// anEffort matches any possible effort, because models have efforts that we do not know.
var anEffort = lazyregexp.Regexp{Text: `^[a-z0-9_-]{1,32}$`}

func checkEffort(effort protocol.ReasoningEffort) error {
	if effort != "" && !anEffort.Get().MatchString(string(effort)) {
		return errors.New("argument /effort: want a word such as low or high; codex-models lists what the model takes")
	}
	return nil
}

func (a *turnArguments) check() (err error) {
	if len(a.Images) > maxImages {
		return fmt.Errorf("argument /images: %d are more than %d", len(a.Images), maxImages)
	}
	if a.OutputSchema != nil {
		if _, err = outputschema.Compile(a.OutputSchema); err != nil {
			return fmt.Errorf("argument /output-schema: %w", err)
		}
	}
	if err = setting.ValidateCheck(a.Check); err != nil {
		return fmt.Errorf("argument /check: %w", err)
	}
	switch b := a.Budget; {
	case b == nil:
	case b.Tokens == nil && b.Minutes == nil:
		return errors.New("argument /budget: want tokens, minutes or both")
	case b.Tokens != nil && *b.Tokens < 1:
		return errors.New("argument /budget/tokens: want at least 1")
	case b.Minutes != nil && *b.Minutes <= 0:
		return errors.New("argument /budget/minutes: want more than 0")
	}
	return nil
}

// begin gives the turn its budget, its checks and the schema of its answer, and returns its input. Paths of images are
// relative to cwd, and must lie in the bounds.
func (a *turnArguments) begin(t *Table, b *begun, prompt, cwd string) (protocol.TurnInput, error) {
	b.Order.Budget, b.Order.Schema = a.Budget, jsontext.Value(a.OutputSchema)
	for _, line := range []string{t.options.Check, a.Check} { // a call does not replace what the person wants
		if line != "" {
			b.Order.Checks = append(b.Order.Checks, line)
		}
	}
	in := protocol.TurnInput{
		Items: protocol.TextInput(prompt), OutputSchema: a.OutputSchema, MaxTokens: maxTokens(a.Budget),
	}
	left := int64(maxImageBytes)
	for i, image := range a.Images {
		url, n, err := imageURL(cwd, image, left, t.Rules.Bounds, engine.Withheld(t.engine, cwd))
		if err != nil {
			return in, fmt.Errorf("argument /images/%d: %w", i, err)
		}
		left -= n
		in.Items = append(in.Items, protocol.InputItem{Type: protocol.InputImage, ImageURL: url})
	}
	return in, nil
}

// maxTokens returns how many tokens a turn may use, 0 without a limit.
func maxTokens(b *turn.Budget) int64 {
	if b == nil || b.Tokens == nil {
		return 0
	}
	return *b.Tokens
}

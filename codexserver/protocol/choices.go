package protocol

import (
	"maps"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json"
)

// Choices are what a call chooses for a conversation and what is no access: arguments of the tool codex that each engine
// gets. A zero member chooses nothing. An engine that is a Resumer keeps them whole with the conversation, as a wish:
// what has become more than the configuration gives is asked about, or left out.
//
// The tags json, enum and about are those of the argument. Key is the key of config.toml that the member is the value of,
// and same names keys that choose the same.
type Choices struct {
	// BaseInstructions replaces the model's instructions; empty is a value.
	BaseInstructions *string `json:"base-instructions,omitzero" about:"Replaces Codex's own instructions."`
	// DeveloperInstructions are a message with the role developer at the beginning of the history; empty is a value.
	DeveloperInstructions *string `json:"developer-instructions,omitzero" key:"developer_instructions" about:"A role or rules, in addition to Codex's own instructions."`
	// CompactPrompt is the prompt that summarises the history. An empty one is the engine's own.
	CompactPrompt *string `json:"compact-prompt,omitzero" key:"compact_prompt" about:"The prompt that summarises a long conversation."`
	// IncludePlanTool offers the tool with which the model keeps a plan.
	IncludePlanTool *bool `json:"include-plan-tool,omitzero" key:"include_plan_tool" about:"Let Codex keep a plan, which the result has."`
	// Effort is sent even to a model that is not known to take it.
	Effort ReasoningEffort `json:"effort,omitzero" key:"model_reasoning_effort" about:"How much the model reasons; codex-models lists the words."`
	// WebSearch switches web searches on or off. A call cannot switch them on if the configuration has
	// web_search = "disabled".
	WebSearch *bool `json:"web-search,omitzero" same:"web_search tools.web_search tools.web_search_request features.web_search_request" about:"Let Codex search the web."`
}

// ChoiceKeys returns for each argument of [Choices] the dotted keys of config.toml that choose the same.
func ChoiceKeys() map[string][]string {
	keys := map[string][]string{}
	for f := range reflect.TypeFor[Choices]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		keys[name] = strings.Fields(f.Tag.Get("key") + " " + f.Tag.Get("same"))
	}
	return keys
}

// Keys returns the choices that are values of keys of config.toml.
func (c Choices) Keys() map[string]any { return keysOf(reflect.ValueOf(c)) }

// Keys returns what the configuration chooses beside Overrides that is the value of a key of config.toml.
func (c *Config) Keys() map[string]any { return keysOf(reflect.ValueOf(*c)) }

// keysOf returns the members of a struct that are not zero and have the tag key.
func keysOf(all reflect.Value) map[string]any {
	keys := map[string]any{}
	for f, v := range all.Fields() {
		if f.Anonymous {
			maps.Copy(keys, keysOf(v))
		} else if key := f.Tag.Get("key"); key != "" && !v.IsZero() {
			keys[key] = reflect.Indirect(v).Interface()
		}
	}
	return keys
}

// Over returns the choices, and those of under that they leave open.
func (c Choices) Over(under Choices) Choices {
	for f, v := range reflect.ValueOf(&c).Elem().Fields() {
		if v.IsZero() {
			v.Set(reflect.ValueOf(under).FieldByIndex(f.Index))
		}
	}
	return c
}

// Chosen returns the choices of a configuration, also those that its overrides make by the key of a member.
func (c *Config) Chosen() Choices {
	var by Choices
	for f, v := range reflect.ValueOf(&by).Elem().Fields() {
		value, err := json.Marshal(c.Overrides[f.Tag.Get("key")])
		if err != nil || json.Unmarshal(value, v.Addr().Interface()) != nil {
			v.SetZero() // which is another kind of value
		}
	}
	return c.Choices.Over(by)
}

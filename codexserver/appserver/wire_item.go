package appserver

import (
	stdjson "encoding/json"
	"fmt"

	"github.com/go-json-experiment/json"
)

// item is a part of a turn. Its type decides which members are used. An item of an
// unknown type has only type and id.
type item struct {
	Type string `json:"type"`
	ID   string `json:"id"`

	// agentMessage
	Text  string `json:"text"`
	Phase string `json:"phase"` // commentary, final_answer, or none

	// reasoning
	Summary []string `json:"summary"`
	Content []string `json:"content"`

	// commandExecution and fileChange: inProgress, completed, failed or declined
	Status string `json:"status"`

	// commandExecution
	Command          string          `json:"command"` // one line of quoted words
	Cwd              string          `json:"cwd"`
	CommandActions   []commandAction `json:"commandActions"`
	AggregatedOutput string          `json:"aggregatedOutput"`
	ExitCode         *int            `json:"exitCode"`
	DurationMS       int64           `json:"durationMs"` // mcpToolCall too

	// fileChange
	Changes []fileUpdate `json:"changes"`

	// mcpToolCall
	Server    string             `json:"server"`
	Tool      string             `json:"tool"`
	Arguments stdjson.RawMessage `json:"arguments"`
	Result    stdjson.RawMessage `json:"result"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error"`

	// webSearch
	Query string `json:"query"`

	// imageView
	Path string `json:"path"`

	// subAgentActivity
	Kind          string `json:"kind"` // started, interacted, interrupted or completed
	AgentThreadID string `json:"agentThreadId"`
	AgentPath     string `json:"agentPath"`
}

const (
	itemAgentMessage = "agentMessage"
	itemReasoning    = "reasoning"
	itemCommand      = "commandExecution"
	itemFileChange   = "fileChange"
	itemMCPToolCall  = "mcpToolCall"
	itemWebSearch    = "webSearch"
	itemImageView    = "imageView"
	itemSubAgent     = "subAgentActivity"
)

// parseItem reads an item. It reads only type and id of an unknown type, whose other
// members may have another meaning.
func parseItem(raw []byte) (item, error) {
	var head struct {
		Type string `json:"type"`
		ID   string `json:"id"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return item{}, fmt.Errorf("item: %w", err)
	}
	it := item{Type: head.Type, ID: head.ID}
	switch head.Type {
	case itemAgentMessage, itemReasoning, itemCommand, itemFileChange, itemMCPToolCall,
		itemWebSearch, itemImageView, itemSubAgent:
		if err := json.Unmarshal(raw, &it); err != nil {
			return item{}, fmt.Errorf("item %s: %w", head.Type, err)
		}
	}
	return it, nil
}

// commandAction is what a part of a command does: read, listFiles, search or unknown.
type commandAction struct {
	Type    string  `json:"type"`
	Command string  `json:"command"`
	Name    *string `json:"name"`
	Path    *string `json:"path"`
	Query   *string `json:"query"`
}

// fileUpdate is the change of one file.
type fileUpdate struct {
	Path string `json:"path"`
	Kind struct {
		Type     string  `json:"type"` // add, delete or update
		MovePath *string `json:"move_path"`
	} `json:"kind"`
	// Diff is the content of an added or deleted file; for an update it is hunks without
	// a file header.
	Diff string `json:"diff"`
}

// note is the params of all notifications of a thread: the members that are used here.
type note struct {
	ThreadID   string             `json:"threadId"`
	TurnID     string             `json:"turnId"`
	Turn       *wireTurn          `json:"turn"`
	ItemID     string             `json:"itemId"`
	Item       stdjson.RawMessage `json:"item"`
	Delta      string             `json:"delta"`
	Diff       string             `json:"diff"`
	RequestID  stdjson.RawMessage `json:"requestId"`
	TokenUsage *tokenUsage        `json:"tokenUsage"`
	RateLimits *rateLimits        `json:"rateLimits"`
	// error
	Error     stdjson.RawMessage `json:"error"`
	WillRetry bool               `json:"willRetry"`
	// turn/plan/updated
	Explanation *string `json:"explanation"`
	Plan        []struct {
		Step   string `json:"step"`
		Status string `json:"status"`
	} `json:"plan"`
	// warning, configWarning, deprecationNotice
	Message string `json:"message"`
	Summary string `json:"summary"`
	Details string `json:"details"`
}

type tokenUsage struct {
	Total  tokenCount `json:"total"`
	Last   tokenCount `json:"last"`
	Window *int64     `json:"modelContextWindow"`
}

type tokenCount struct {
	Total     int64 `json:"totalTokens"`
	Input     int64 `json:"inputTokens"`
	Cached    int64 `json:"cachedInputTokens"`
	Output    int64 `json:"outputTokens"`
	Reasoning int64 `json:"reasoningOutputTokens"`
}

type rateLimits struct {
	Primary   *rateWindow `json:"primary"`
	Secondary *rateWindow `json:"secondary"`
}

type rateWindow struct {
	UsedPercent float64 `json:"usedPercent"`
	Minutes     *int64  `json:"windowDurationMins"`
	ResetsAt    *int64  `json:"resetsAt"` // Unix seconds
}

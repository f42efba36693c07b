package bench_test

import "github.com/go-json-experiment/json/jsontext"

// These are structs as one writes them by hand, without checks. Unions are one struct with the
// members of all arms, and what is open in the protocol is raw.
type (
	plainCall struct {
		Meta           *plainMeta             `json:"_meta,omitempty"`
		Name           string                 `json:"name"`
		Arguments      jsontext.Value         `json:"arguments,omitempty"`
		InputResponses map[string]plainAnswer `json:"inputResponses,omitempty"`
		RequestState   string                 `json:"requestState,omitempty"`
	}
	plainMeta struct {
		ProgressToken      jsontext.Value     `json:"progressToken,omitempty"`
		ProtocolVersion    string             `json:"io.modelcontextprotocol/protocolVersion,omitempty"`
		ClientInfo         *plainServer       `json:"io.modelcontextprotocol/clientInfo,omitempty"`
		ServerInfo         *plainServer       `json:"io.modelcontextprotocol/serverInfo,omitempty"`
		ClientCapabilities *plainCapabilities `json:"io.modelcontextprotocol/clientCapabilities,omitempty"`
	}
	plainServer struct {
		Name    string `json:"name"`
		Title   string `json:"title,omitempty"`
		Version string `json:"version"`
	}
	plainCapabilities struct {
		Elicitation map[string]jsontext.Value `json:"elicitation,omitempty"`
		Extensions  map[string]jsontext.Value `json:"extensions,omitempty"`
	}
	plainAnswer struct {
		Action  string                    `json:"action"`
		Content map[string]jsontext.Value `json:"content,omitempty"`
	}
	plainResult struct {
		Meta              *plainMeta     `json:"_meta,omitempty"`
		Content           []plainContent `json:"content"`
		StructuredContent jsontext.Value `json:"structuredContent,omitempty"`
		IsError           *bool          `json:"isError,omitempty"`
	}
	plainContent struct {
		Type        string            `json:"type"`
		Text        string            `json:"text,omitempty"`
		URI         string            `json:"uri,omitempty"`
		Name        string            `json:"name,omitempty"`
		MimeType    string            `json:"mimeType,omitempty"`
		Size        int64             `json:"size,omitzero"`
		Annotations *plainAnnotations `json:"annotations,omitempty"`
	}
	plainAnnotations struct {
		Audience []string `json:"audience,omitempty"`
		Priority *float64 `json:"priority,omitempty"`
	}
	plainList struct {
		Tools      []plainTool `json:"tools"`
		NextCursor string      `json:"nextCursor,omitempty"`
		ResultType string      `json:"resultType,omitempty"`
		TTLMs      int64       `json:"ttlMs,omitzero"`
		CacheScope string      `json:"cacheScope,omitempty"`
	}
	plainTool struct {
		Name        string          `json:"name"`
		Title       string          `json:"title,omitempty"`
		Description string          `json:"description,omitempty"`
		InputSchema jsontext.Value  `json:"inputSchema"`
		Annotations *plainToolHints `json:"annotations,omitempty"`
	}
	plainToolHints struct {
		ReadOnly  *bool `json:"readOnlyHint,omitempty"`
		OpenWorld *bool `json:"openWorldHint,omitempty"`
	}
	plainTask struct {
		Meta           *plainMeta               `json:"_meta,omitempty"`
		ResultType     string                   `json:"resultType"`
		TaskID         string                   `json:"taskId"`
		Status         string                   `json:"status"`
		StatusMessage  string                   `json:"statusMessage,omitempty"`
		CreatedAt      string                   `json:"createdAt"`
		LastUpdatedAt  string                   `json:"lastUpdatedAt"`
		TTLMs          *int64                   `json:"ttlMs"`
		PollIntervalMs int64                    `json:"pollIntervalMs,omitzero"`
		InputRequests  map[string]plainQuestion `json:"inputRequests,omitempty"`
		Result         jsontext.Value           `json:"result,omitempty"`
		Error          jsontext.Value           `json:"error,omitempty"`
	}
	plainQuestion struct {
		Method string `json:"method"`
		Params struct {
			Mode            string    `json:"mode,omitempty"`
			Message         string    `json:"message"`
			RequestedSchema plainForm `json:"requestedSchema"`
		} `json:"params"`
	}
	plainForm struct {
		Type       string                `json:"type"`
		Properties map[string]plainField `json:"properties"`
		Required   []string              `json:"required,omitempty"`
	}
	plainField struct {
		Type        string        `json:"type"`
		Title       string        `json:"title,omitempty"`
		Description string        `json:"description,omitempty"`
		OneOf       []plainChoice `json:"oneOf,omitempty"`
		MaxLength   int64         `json:"maxLength,omitzero"`
		Default     *bool         `json:"default,omitempty"`
	}
	plainChoice struct {
		Const string `json:"const"`
		Title string `json:"title"`
	}
)

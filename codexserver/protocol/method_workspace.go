package protocol

// GetUserSavedConfigResult is the result of getUserSavedConfig.
type GetUserSavedConfigResult struct {
	Config UserSavedConfig `json:"config"`
}

// UserSavedConfig is the part of config.toml that clients show. Keys that are
// not in the file are left out, but for those of a profile, which are null.
type UserSavedConfig struct {
	ApprovalPolicy        ApprovalPolicy          `json:"approvalPolicy,omitzero"`
	SandboxMode           SandboxMode             `json:"sandboxMode,omitzero"`
	SandboxSettings       *SandboxSettings        `json:"sandboxSettings,omitzero"`
	Model                 *string                 `json:"model,omitzero"`
	ModelReasoningEffort  ReasoningEffort         `json:"modelReasoningEffort,omitzero"`
	ModelReasoningSummary ReasoningSummary        `json:"modelReasoningSummary,omitzero"`
	ModelVerbosity        *string                 `json:"modelVerbosity,omitzero"`
	Tools                 *SavedTools             `json:"tools,omitzero"`
	Profile               *string                 `json:"profile,omitzero"`
	Profiles              map[string]SavedProfile `json:"profiles"`
}

// SandboxSettings is the table sandbox_workspace_write, complete as soon as it
// is in the file.
type SandboxSettings struct {
	WritableRoots       []string `json:"writableRoots"`
	NetworkAccess       *bool    `json:"networkAccess,omitzero"`
	ExcludeTmpdirEnvVar *bool    `json:"excludeTmpdirEnvVar,omitzero"`
	ExcludeSlashTmp     *bool    `json:"excludeSlashTmp,omitzero"`
}

// SavedTools is the table tools.
type SavedTools struct {
	WebSearch *bool `json:"webSearch,omitzero"`
	ViewImage *bool `json:"viewImage,omitzero"`
}

// SavedProfile is a profile; what is not in the file is null.
type SavedProfile struct {
	Model                 *string           `json:"model"`
	ModelProvider         *string           `json:"modelProvider"`
	ApprovalPolicy        *ApprovalPolicy   `json:"approvalPolicy"`
	ModelReasoningEffort  *ReasoningEffort  `json:"modelReasoningEffort"`
	ModelReasoningSummary *ReasoningSummary `json:"modelReasoningSummary"`
	ModelVerbosity        *string           `json:"modelVerbosity"`
	ChatGPTBaseURL        *string           `json:"chatgptBaseUrl"`
}

// SetDefaultModelParams are the params of setDefaultModel; an absent or null
// member removes the key from the file.
type SetDefaultModelParams struct {
	Model           *string          `json:"model,omitzero"`
	ReasoningEffort *ReasoningEffort `json:"reasoningEffort,omitzero"`
}

// GitDiffToRemoteParams are the params of gitDiffToRemote.
type GitDiffToRemoteParams struct {
	Cwd string `json:"cwd"`
}

// GitDiffToRemoteResult is the result of gitDiffToRemote.
type GitDiffToRemoteResult struct {
	// SHA is the closest commit that a remote has.
	SHA string `json:"sha"`
	// Diff is from there to the working tree, untracked files included.
	Diff string `json:"diff"`
}

// ExecOneOffCommandParams are the params of execOneOffCommand.
type ExecOneOffCommandParams struct {
	Command []string `json:"command"`
	// TimeoutMs is in milliseconds, 10,000 by default.
	TimeoutMs *int64 `json:"timeoutMs,omitzero"`
	// Cwd is the server's own folder by default.
	Cwd string `json:"cwd,omitzero"`
	// SandboxPolicy is the configured one by default.
	SandboxPolicy *SandboxPolicy `json:"sandboxPolicy,omitzero"`
}

// ExecOneOffCommandResult is the result of execOneOffCommand.
type ExecOneOffCommandResult struct {
	ExitCode int    `json:"exitCode"`
	Stdout   string `json:"stdout"`
	Stderr   string `json:"stderr"`
}

// FuzzyFileSearchParams are the params of fuzzyFileSearch.
type FuzzyFileSearchParams struct {
	Query string   `json:"query"`
	Roots []string `json:"roots"`
	// CancellationToken makes this search end an earlier one with the same token.
	CancellationToken string `json:"cancellationToken,omitzero"`
}

// FuzzyFileSearchResult is the result of fuzzyFileSearch, best first.
type FuzzyFileSearchResult struct {
	Files []FuzzyFile `json:"files"`
}

// FuzzyFile is one file that matches.
type FuzzyFile struct {
	// Root is the root that it was found in.
	Root string `json:"root"`
	// Path is relative to the root.
	Path string `json:"path"`
	// FileName is the last part of the path.
	FileName string `json:"file_name"`
	// Score orders the files; its scale has no meaning.
	Score uint32 `json:"score"`
	// Indices are the places, in characters, of Path that match.
	Indices []uint32 `json:"indices,omitzero"`
}

package protocol

// GetUserSavedConfigResult is the result of getUserSavedConfig.
type GetUserSavedConfigResult struct {
	// Config is the content of the file.
	Config UserSavedConfig `json:"config"`
}

// UserSavedConfig is the part of config.toml that clients show. Keys that are not in the
// file are left out; in a profile they are null.
type UserSavedConfig struct {
	// ApprovalPolicy is approval_policy.
	ApprovalPolicy ApprovalPolicy `json:"approvalPolicy,omitzero"`
	// SandboxMode is sandbox_mode.
	SandboxMode SandboxMode `json:"sandboxMode,omitzero"`
	// SandboxSettings is sandbox_workspace_write.
	SandboxSettings *SandboxSettings `json:"sandboxSettings,omitzero"`
	// Model is model.
	Model *string `json:"model,omitzero"`
	// ModelReasoningEffort is model_reasoning_effort.
	ModelReasoningEffort ReasoningEffort `json:"modelReasoningEffort,omitzero"`
	// ModelReasoningSummary is model_reasoning_summary.
	ModelReasoningSummary ReasoningSummary `json:"modelReasoningSummary,omitzero"`
	// ModelVerbosity is model_verbosity.
	ModelVerbosity *string `json:"modelVerbosity,omitzero"`
	// Tools is tools.
	Tools *SavedTools `json:"tools,omitzero"`
	// Profile is profile, the name of the one in use.
	Profile *string `json:"profile,omitzero"`
	// Profiles is profiles, by name; empty without any.
	Profiles map[string]SavedProfile `json:"profiles"`
}

// SandboxSettings is the table sandbox_workspace_write. If the table is in the file, all
// members are set.
type SandboxSettings struct {
	// WritableRoots is writable_roots, empty by default.
	WritableRoots []string `json:"writableRoots"`
	// NetworkAccess is network_access.
	NetworkAccess *bool `json:"networkAccess,omitzero"`
	// ExcludeTmpdirEnvVar is exclude_tmpdir_env_var.
	ExcludeTmpdirEnvVar *bool `json:"excludeTmpdirEnvVar,omitzero"`
	// ExcludeSlashTmp is exclude_slash_tmp.
	ExcludeSlashTmp *bool `json:"excludeSlashTmp,omitzero"`
}

// SavedTools is the table tools.
type SavedTools struct {
	// WebSearch is web_search.
	WebSearch *bool `json:"webSearch,omitzero"`
	// ViewImage is view_image.
	ViewImage *bool `json:"viewImage,omitzero"`
}

// SavedProfile is a profile. A key that is not in the file is null.
type SavedProfile struct {
	// Model is model.
	Model *string `json:"model"`
	// ModelProvider is model_provider.
	ModelProvider *string `json:"modelProvider"`
	// ApprovalPolicy is approval_policy.
	ApprovalPolicy *ApprovalPolicy `json:"approvalPolicy"`
	// ModelReasoningEffort is model_reasoning_effort.
	ModelReasoningEffort *ReasoningEffort `json:"modelReasoningEffort"`
	// ModelReasoningSummary is model_reasoning_summary.
	ModelReasoningSummary *ReasoningSummary `json:"modelReasoningSummary"`
	// ModelVerbosity is model_verbosity.
	ModelVerbosity *string `json:"modelVerbosity"`
	// ChatGPTBaseURL is chatgpt_base_url.
	ChatGPTBaseURL *string `json:"chatgptBaseUrl"`
}

// SetDefaultModelParams are the params of setDefaultModel. A missing or null member removes
// the key from the file.
type SetDefaultModelParams struct {
	// Model is written to model.
	Model *string `json:"model,omitzero"`
	// ReasoningEffort is written to model_reasoning_effort.
	ReasoningEffort *ReasoningEffort `json:"reasoningEffort,omitzero"`
}

// GitDiffToRemoteParams are the params of gitDiffToRemote.
type GitDiffToRemoteParams struct {
	// Cwd is a folder of the repository.
	Cwd string `json:"cwd"`
}

// GitDiffToRemoteResult is the result of gitDiffToRemote.
type GitDiffToRemoteResult struct {
	// SHA is the closest commit that a remote has.
	SHA string `json:"sha"`
	// Diff is the difference from there to the working tree, with untracked files.
	Diff string `json:"diff"`
}

// ExecOneOffCommandParams are the params of execOneOffCommand.
type ExecOneOffCommandParams struct {
	// Command is the argv.
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
	// ExitCode is the exit status. A command that takes too long is an error instead.
	ExitCode int `json:"exitCode"`
	// Stdout is the standard output.
	Stdout string `json:"stdout"`
	// Stderr is the standard error.
	Stderr string `json:"stderr"`
}

// FuzzyFileSearchParams are the params of fuzzyFileSearch.
type FuzzyFileSearchParams struct {
	// Query is letters of the path, in order.
	Query string `json:"query"`
	// Roots are the folders to search.
	Roots []string `json:"roots"`
	// CancellationToken ends an earlier search with the same token.
	CancellationToken string `json:"cancellationToken,omitzero"`
}

// FuzzyFileSearchResult is the result of fuzzyFileSearch, best first.
type FuzzyFileSearchResult struct {
	// Files are the matches.
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
	// Score orders the files. Its scale has no meaning.
	Score uint32 `json:"score"`
	// Indices are the positions, in characters, of the matching letters in Path.
	Indices []uint32 `json:"indices,omitzero"`
}

package modern

// The values of resultType that the specification and the tasks extension
// define. The schema admits any string.
const (
	ResultTypeComplete      ResultType = "complete"       // the request's own result
	ResultTypeInputRequired ResultType = "input_required" // see [InputRequiredResult]
	ResultTypeTask          ResultType = "task"           // see [CreateTaskResult]
)

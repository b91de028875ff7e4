"""The engine `vllm_servers`: text generation by vLLM in processes of its own, over HTTP.

`engine` is the protocol `Engine`. `fleet` has the servers of one model, asks them, and replaces those that are lost.
`server` is one of them. `process` starts it and `keeper` ends it with its parent. `placed` has Ray start it, on any
node of a cluster. `store` has the weights on disk, which `tensors` writes, and `remover` removes them with their maker.
`below` keeps `keeper` and `remover` out of Ray's reach. `wire` is what is sent and read. `addresses` finds servers that
others have started. `program` is vLLM's server for models that read pictures. Nothing else imports vLLM: its own server
does.
"""

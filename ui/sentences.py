"""What went wrong, in the reader's language: errors are made in English, which stays the API's, and told here in Chinese.

A sentence is known by its words, also where only those are left, as with a triage that was kept; where it is
not
known, the kind of the error has a sentence of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from corpus.schema import Language
from service.schemas.errors import RequestError
from service.schemas.events import TriageFailed

# The name of an error's type without its ending. `{wait}` are the seconds after which another try makes
# sense.
KINDS: Mapping[str, str] = {
    "Request": "请求无法完成。",
    "InvalidRequest": "请求的内容不符合要求。",
    "Unauthorized": "没有密钥，或密钥无效。",
    "KeysLost": "服务器曾有 API 密钥，而数据库中现在没有：请在服务器上用 `whycrash keys add` 创建。",
    "PageKey": "请登录：用户名任意，密码填 API 密钥。",
    "Forbidden": "没有权限这样做。",
    "NotFound": "没有找到：可能已被删除，或链接有误。",
    "Conflict": "与当前状态冲突：可能仍在处理中，请稍后再试。",
    "TooLarge": "内容超过了服务器的上限。",
    "Busy": "当前请求过多，请 {wait} 秒后重试。",
    "WorkerLost": "处理这份日志的进程意外结束，可能是内存不足。",
    "Stopping": "服务器正在停止，恢复后请重试。",
    "NoWorker": "服务器暂时无法启动处理进程，请稍后重试。",
    "Abandoned": "提交者在轮到处理之前已离开，请重新提交。",
    "Store": "服务器的数据库暂时无法使用，请稍后重试。",
    "DamagedStore": "服务器的数据库已损坏；重新启动 whycrash 时会把它移开保存，并新建一个。",
    "NewerStore": "数据库来自更新版本的 whycrash，请升级。",
    "Deadlock": "数据库正被太多请求同时修改，请稍后重试。",
    "Late": "没有在时限内完成。",
    "DiskFull": "服务器磁盘已满，请清理后重试。",
    "MediaType": "不接受这种内容类型。",
    "Misdirected": "请求发给了另一台服务器的名字。",
    "SlowClient": "请求的内容传得太慢，已中断。",
    "Unexpected": "服务器出错了，详情在服务器日志里；日志没有丢失，请重新提交。",
    "Ended": "处理中断，没有得到答案。",
    "Unreachable": "无法连接服务器。",
    "Gone": "上传的文件已不在，请重新添加。",
    # What comes from below the triage service.
    "Service": "服务无法完成这项请求。",
    "Settings": "有一项设置的值无法使用。",
    "Post": "结果没有发送成功。",
    "ExecutorLost": "执行任务的进程已丢失。",
    "Telemetry": "遥测数据无法使用。",
    "InvalidSnapshot": "这份机器快照无法读取。",
    "UnknownHost": "不允许访问这台主机。",
    "Triage": "分析没有完成。",
    "Ingest": "内容无法读取。",
    "Input": "输入无法作为日志读取。",
    "MissingInput": "没有这个文件，或无法打开。",
    "FolderInput": "这是一个文件夹，请给出日志文件。",
    "ArchiveInput": "这是压缩包，不是文本日志。",
    "EmptyInput": "没有可以读取的日志内容。",
    "BinaryInput": "这不是文本日志。",
    "BrokenArchive": "压缩包无法读取。",
    "PartialInput": "内容只读取了一部分。",
    "DamagedArchive": "压缩包已损坏，只读取了一部分。",
    "BombInput": "解压后的内容过大，只读取了一部分。",
    "GrowingInput": "文件写入得比读取快，只读取了一部分。",
    "UnreadableInput": "文件无法继续读取。",
    "BrokenTemplates": "这不是正常运行的模板。",
    "SearchIndex": "索引无法使用。",
    "NewerIndex": "索引来自更新版本的 whycrash，请升级。",
    "ChromaServer": "Chroma 服务器无法使用。",
    "Corpus": "知识库有误。",
    "UnknownCase": "没有这个案例。",
    "InvalidCorpus": "知识库有误。",
    "Model": "模型无法使用。",
}
# Kinds whose own sentence says too little without the particulars.
_VAGUE = frozenset(
    {
        "Request",
        "InvalidRequest",
        "Forbidden",
        "Settings",
        "Service",
        "Telemetry",
        "InvalidSnapshot",
        "Ingest",
        "Input",
        "SearchIndex",
        "ChromaServer",
        "Corpus",
        "InvalidCorpus",
        "Model",
        "Post",
        "ExecutorLost",
        "MediaType",
    }
)

# Each `{}` stands for what differs; the Chinese takes them in the same order, or by number.
SENTENCES: Mapping[str, str] = {
    # The triage service and its workers.
    "There is no log: paste its text, or hand in its files.": "没有日志：请粘贴内容，或添加文件。",
    "The question is empty.": "问题是空的。",
    "There is no triage {}; it may have been deleted.": "没有这次分析（{}）：可能已被删除，或链接有误。",
    "There is no triage {}.": "没有这次分析（{}）：可能已被删除，或链接有误。",
    "The triage {} has no answer.": "这次分析（{}）没有答案。",
    "There is no triage {} in this session; call triage_log first and pass its id.": "本次会话中没有分析 {}；请先调用 triage_log，再传入它的 id。",
    "There is no job {}; its batch may have been deleted.": "没有作业 {}；它所在的批次可能已被删除。",
    "There is no batch {}; it may have been deleted.": "没有批次 {}；可能已被删除。",
    "There is no batch {}.": "没有批次 {}。",
    "There is no such key.": "没有这个密钥；`whycrash keys list` 会列出全部。",
    "There is no cause {}; see GET /v1/causes or `corpus/causes.yaml`.": "没有名为 {} 的原因；见 GET /v1/causes 或 `corpus/causes.yaml`。",
    "This triage is still under way; ask when its first answer is there.": "这次分析仍在进行，请等第一个答案出来后再问。",
    "There was no answer.": "没有得到答案。",
    "{} triages are under way; try again in {} seconds.": "正在处理的分析有 {} 个，请 {} 秒后重试。",
    "This took longer than {} seconds and was ended; a smaller part of the log may do.": "超过 {} 秒仍未完成，已中止；可以只提交日志的一部分。",
    "The server is stopping; hand it in again in a moment.": "服务器正在停止，请稍后重新提交。",
    "Whoever handed it in left before its turn came; hand it in again.": "提交者在轮到处理之前已离开，请重新提交。",
    "Whoever handed it in left before it was read.": "提交者在读取之前已离开。",
    "This could not be read within {} seconds and was ended; hand it in in parts.": "{} 秒内未能读完，已中止；请分成几部分提交。",
    "The workers are still loading.": "处理进程仍在加载，请稍后重试。",
    "The workers are not started.": "处理进程尚未启动，请稍后重试。",
    "A worker could not start; the server's log says why.": "处理进程无法启动，原因见服务器日志。",
    "The process that read this log died; it may need more memory than there is.": "读取这份日志的进程意外结束，可能是内存不足。",
    "The server was stopped before the answer was finished.": "答案完成之前服务器停止了。",
    "Something went wrong here that should not; the server's log says where. The log itself was not lost: "
    "hand it in again.": "服务器出错了，详情在服务器日志里；日志没有丢失，请重新提交。",
    "Too little of this log was kept to answer further questions; hand it in again.": "保存下来的日志太少，无法继续回答；请重新提交日志。",
    "There is no such session of the page; load it anew.": "没有这个页面会话，请重新加载页面。",
    "{}; the server's log says more.": "服务器出错（{}），详情在服务器日志里。",
    # The page's uploads.
    "That is more than {} files; put them into an archive.": "文件超过 {} 个，请打成一个压缩包。",
    "{} is no uploaded file.": "{} 不是上传的文件。",
    "{} is gone. Add it again.": "{} 已不在，请重新添加。",
    "Give one snapshot of the machine.": "请只给一份机器快照。",
    "Give the log's text, or paths of its files: one of the two.": "请给出日志内容或文件路径，二者选一。",
    "Say what to look for.": "请写明要查什么。",
    "The catalogue has no framework {}; {}": "目录中没有框架 {}；{}",
    "{} is no job's output; name a log, or the folder of one job.": "{} 不是作业的输出；请给出日志，或一个作业的文件夹。",
    # The API.
    "More is being handed in than there are places.": "正在提交的内容过多，请稍后重试。",
    "More is being worked on than there are places.": "正在处理的内容过多，请稍后重试。",
    "This key or address asked too often in the last minute.": "最近一分钟内请求过于频繁，请稍后重试。",
    "Too many files are open.": "打开的文件过多，请稍后重试。",
    "Job {} has not ended; its result comes when it has.": "作业 {} 尚未结束，结束后才有结果。",
    "The first request with this idempotency key is still worked on.": "使用该幂等键的第一个请求仍在处理。",
    "This idempotency key was used for another request; take a new one.": "该幂等键已用于另一个请求，请换一个。",
    "The triage of this request has no answer.": "该请求的分析没有答案。",
    "Reading the server's own machine takes a key with the scope admin.": "读取服务器自身的遥测需要 admin 权限的密钥。",
    "This key's scopes are {}; this takes {}.": "该密钥的权限是 {}，而这项操作需要 {}。",
    "The key is not valid. Make one on the server with `whycrash keys add`.": "密钥无效。请在服务器上用 `whycrash keys add` 创建。",
    "Send `Authorization: Bearer whycrash_...`. Make a key on the server with `whycrash keys add`.": "请发送 `Authorization: Bearer whycrash_...`。密钥在服务器上用 `whycrash keys add` 创建。",
    "Log in with any name, and an API key as the password. Make one on the server with `whycrash keys add`.": "请登录：用户名任意，密码填 API 密钥。密钥在服务器上用 `whycrash keys add` 创建。",
    "This server had API keys, and its database has none now: it was replaced or damaged. Make one on the "
    "server with `whycrash keys add`.": "服务器曾有 API 密钥，而数据库中现在没有：数据库已被替换或损坏。请在服务器上用 `whycrash keys add` 创建密钥。",
    "A key in the database cannot be read: the database is damaged.": "数据库中有一个密钥无法读取：数据库已损坏。",
    "A key has a name of 1 to {} printable characters.": "密钥的名称是 1 到 {} 个可打印字符。",
    "A key's scopes are of {}; got {}.": "密钥的权限只能是 {}；收到的是 {}。",
    "A part has no name in its Content-Disposition.": "有一部分内容的 Content-Disposition 中没有名称。",
    "An Idempotency-Key has 1 to 200 printable ASCII characters and no blanks.": "Idempotency-Key 是 1 到 200 个可打印 ASCII 字符，不含空格。",
    'Each line is a job in JSON: {"name": ..., "log": ...}.': '每行是一个 JSON 作业：{{"name": ..., "log": ...}}。',
    "No file was sent.": "没有发送文件。",
    "Send configurations as files, in the field `config`.": "请把配置作为文件放在字段 `config` 中发送。",
    "Send the log as a file or as text, not both.": "日志请作为文件或文本发送，不要同时用两种。",
    "Send {}.": "请发送 {}。",
    "Send {}, or one of {}.": "请发送 {}，或 {} 之一。",
    "The Content-Type names no boundary.": "Content-Type 中没有 boundary。",
    "The field {} comes twice, or there are too many fields.": "字段 {} 出现了两次，或字段过多。",
    "The headers of a part are too long.": "有一部分内容的头部过长。",
    "The multipart body is cut off: its last boundary is missing.": "multipart 内容不完整：缺少最后的 boundary。",
    "The multipart body is damaged.": "multipart 内容已损坏。",
    "There is no field {}; there are the files `log` and the fields {}.": "没有字段 {}；可用的是文件 `log` 和字段 {}。",
    "There is no file field {}; there are {}.": "没有文件字段 {}；可用的是 {}。",
    "{} takes true or false.": "{} 只能是 true 或 false。",
    "There is nothing at this path for {}.": "该路径不支持 {}。",
    "The request is not in the form that was asked for.": "请求的内容不符合要求。",
    "The server made a mistake. Its log tells which, under the request's id.": "服务器出错了；服务器日志中按请求编号可以查到详情。",
    "The work ended without an answer.": "处理中断，没有得到答案。",
    "The work was not finished before the deadline.": "没有在时限内完成。",
    "The body is larger than {}, the most that is taken here.": "内容超过上限 {}。",
    "The fields are too long. Send a log as a file.": "字段过长，请把日志作为文件发送。",
    "More than {} files in one request.": "一次请求中的文件超过 {} 个。",
    "No byte of the body came for {} seconds.": "{} 秒内没有收到任何内容，已中断。",
    "The body comes at less than {} bytes a second.": "内容传输低于每秒 {} 字节，已中断。",
    "There is no room on the disk for the upload.": "磁盘空间不足，无法保存上传的内容。",
    # Batches.
    "A batch may have at most {} jobs (WHYCRASH_MAX_JOBS).": "一个批次最多 {} 个作业（WHYCRASH_MAX_JOBS）。",
    "There is no job in this batch.": "这个批次中没有作业。",
    "There is no job in this batch. {}": "这个批次中没有作业。{}",
    "There is no room on the disk for this batch; free some space, then try again.": "磁盘空间不足，无法保存这个批次；请清理后重试。",
    "Line {} is longer than {} MiB; send such a log as a file.": "第 {} 行超过 {} MiB；这样的日志请作为文件发送。",
    "The logs unpack to more than a request may hold (WHYCRASH_MAX_UNPACKED_MB), or to far more than logs "
    "do.": "日志解压后超过上限（WHYCRASH_MAX_UNPACKED_MB），或远超正常日志的大小。",
    "{} holds more jobs than the {} that a batch takes (WHYCRASH_MAX_JOBS).": "{} 中的作业超过一个批次的上限 {}（WHYCRASH_MAX_JOBS）。",
    "{} holds no job's log.": "{} 中没有作业的日志。",
    "{} holds no job's log. Left out: {}.": "{} 中没有作业的日志。略过：{}。",
    "{} is none of the Ray dashboards that batches may ask (WHYCRASH_RAY_DASHBOARDS).": "{} 不在批次可以访问的 Ray dashboard 之列（WHYCRASH_RAY_DASHBOARDS）。",
    "{} is under none of the folders that batches may read (WHYCRASH_BATCH_ROOTS).": "{} 不在批次可以读取的文件夹之下（WHYCRASH_BATCH_ROOTS）。",
    "It leads out of the folders that batches may read (WHYCRASH_BATCH_ROOTS).": "它指向批次可以读取的文件夹之外（WHYCRASH_BATCH_ROOTS）。",
    "There is no output of this job.": "没有这个作业的输出。",
    "Ray's dashboard at {} could not be asked for its jobs: {}.": "无法从 Ray dashboard {} 查询作业：{}。",
    "{} is no address of a dashboard, such as http://127.0.0.1:8265.": "{} 不是 dashboard 的地址（例如 http://127.0.0.1:8265）。",
    "{} is no address of a dashboard: {}.": "{} 不是 dashboard 的地址：{}。",
    "There is no sacct on this machine; run whycrash where Slurm's commands are.": "这台机器上没有 sacct；请在有 Slurm 命令的机器上运行 whycrash。",
    "sacct failed: {}.": "sacct 失败：{}。",
    "sacct did not answer within {} s; ask for a shorter time.": "sacct 没有在 {} 秒内回答；请缩短查询的时间范围。",
    "The batch {} was not over after {} seconds.": "批次 {} 在 {} 秒后仍未结束。",
    "{} is no folder.": "{} 不是文件夹。",
    "--since is {}; write it as 2026-11-20, 2026-11-20T08:00, 36h or 7d.": "--since 的值是 {}；请写成 2026-11-20、2026-11-20T08:00、36h 或 7d。",
    "--since {} is before all time.": "--since {} 超出了可表示的时间。",
    "Give files or folders, or --slurm, or --ray URL, or --kubernetes DIR: one of them.": "请给出文件或文件夹，或 --slurm、--ray URL、--kubernetes DIR 之一。",
    "There is no folder {} for --out.": "--out 所在的文件夹 {} 不存在。",
    "{} is there already and whole; give another --out, or delete it to triage anew.": "{} 已经存在且完整；请换一个 --out，或删除它后重新分析。",
    "{} is of another batch that has not ended; give another --out, or delete it.": "{} 属于另一个尚未结束的批次；请换一个 --out，或删除它。",
    # Whycrash asked over the network.
    "The server did not answer in time.": "服务器没有及时回答。",
    "The server cut the answer off.": "服务器的回答中断了。",
    "{} cannot be asked: {}.": "无法访问 {}：{}。",
    "Nothing could be sent to {} ({}).": "无法发送到 {}（{}）。",
    "{} answered, but not as a whycrash service does.": "{} 有回答，但不是 whycrash 服务。",
    "{} answered {}: {}": "{} 返回 {}：{}",
    # The database.
    "The database {} is damaged ({}). Start whycrash's server, which moves it aside and makes a new one, "
    "or put back a copy of it.": "数据库 {} 已损坏（{}）。请启动 whycrash 服务器，它会把损坏的文件移开并新建一个；或恢复备份。",
    "The database {} is damaged ({}). Stop whycrash and start it again: the damaged file is moved aside "
    "and kept, and a new one is made.": "数据库 {} 已损坏（{}）。请停止 whycrash 再启动：损坏的文件会移开保存，并新建一个。",
    "There is no room for the database {} ({}); free some space, then try again.": "数据库 {} 没有空间（{}）；请清理后重试。",
    "The database {} is changed by too many at once ({}); try again in a moment.": "数据库 {} 正被太多请求同时修改（{}），请稍后重试。",
    "The database {} cannot be made ({}); see the folder's permissions and its disk.": "无法创建数据库 {}（{}）；请检查文件夹权限和磁盘。",
    "The database {} cannot be reached ({}); see that its server runs.": "无法连接数据库 {}（{}）；请确认数据库服务器在运行。",
    "The database {} does not let us in ({}); see its permissions, its name and its password.": "数据库 {} 拒绝访问（{}）；请检查权限、名称和密码。",
    "The database {} failed ({}).": "数据库 {} 出错（{}）。",
    "The database {} is locked by another process ({}); try again in a moment.": "数据库 {} 被另一个进程锁定（{}），请稍后重试。",
    "The database {} is busy; try again in a moment.": "数据库 {} 繁忙，请稍后重试。",
    "The folder {} of the database cannot be written ({}).": "数据库所在的文件夹 {} 无法写入（{}）。",
    "Too many ask the database at once; try again in a moment.": "同时访问数据库的请求过多，请稍后重试。",
    "This is in the database {} already, or what it belongs to was deleted ({}).": "数据库 {} 中已有这一项，或它所属的内容已被删除（{}）。",
    "The database {} has the schema {}, of a newer whycrash than this one, which knows {}: update "
    "whycrash, or give it another database by WHYCRASH_DATABASE.": "数据库 {} 的结构版本是 {}，比本 whycrash 所知的 {} 更新：请升级 whycrash，或用 WHYCRASH_DATABASE 指定另一个数据库。",
    "{} cannot be written ({}); set WHYCRASH_HOME to a folder of yours.": "{} 无法写入（{}）；请把 WHYCRASH_HOME 设为自己的文件夹。",
    # What was given to read.
    "There is no file {}.": "没有文件 {}。",
    "There is no file or folder {}.": "没有文件或文件夹 {}。",
    "There is no such file: its name holds a NUL.": "没有这个文件：名称中含有 NUL 字符。",
    "{} is a folder; give a file.": "{} 是文件夹，请给出文件。",
    "{} is a folder; give one log file, or use `whycrash ingest --logs {}`.": "{} 是文件夹；请给出一个日志文件，或使用 `whycrash ingest --logs {}`。",
    "{} cannot be opened: {}.": "{} 无法打开：{}。",
    "Standard input is a job of its own; give it alone, or files alone.": "标准输入本身就是一个作业；请单独使用它，或只给文件。",
    "Standard input is closed; give a file.": "标准输入已关闭，请给出文件。",
    "{} is empty: nothing was written, or it is the wrong file.": "{} 是空的：没有写入任何内容，或给错了文件。",
    "{} holds no log that can be read. {}": "{} 中没有可以读取的日志。{}",
    "{} is a tar archive, not a text log.": "{} 是 tar 压缩包，不是文本日志。",
    "{} is a zip archive or a PyTorch checkpoint, not a text log; zips of logs are read from a file, not "
    "from a pipe.": "{} 是 zip 压缩包或 PyTorch 检查点，不是文本日志；日志的 zip 要以文件给出，不能通过管道。",
    "{} is a zip archive with a directory of {} MiB: too many files to be a job's logs.": "{} 是目录达 {} MiB 的 zip 压缩包：文件太多，不像作业的日志。",
    "{} is a model's weights, not a text log.": "{} 是模型权重，不是文本日志。",
    "{} is not text: most of its bytes are no characters.": "{} 不是文本：大部分字节都不是字符。",
    "{} is not text: {} % of its first bytes are control codes.": "{} 不是文本：开头 {}% 的字节是控制字符。",
    "{} is not text: it begins with {} NUL bytes and has no line; what was written to it is lost.": "{} 不是文本：开头是 {} 个 NUL 字节，没有任何一行；写入的内容已丢失。",
    "{} is a device, not a file; give a file, or `-` for standard input.": "{} 是设备，不是文件；请给出文件，或用 `-` 表示标准输入。",
    "Nothing came through the pipe {} in {} s; start what writes to it, or give a file.": "管道 {} 在 {} 秒内没有任何内容；请启动向它写入的程序，或给出文件。",
    "A log's name is empty; a variable of the shell that is not set leaves such a one.": "日志的名称为空；shell 中没有设置的变量会造成这种情况。",
    "{} is {}, not a job's logs.": "{} 是 {}，不是作业的日志。",
    "{} is {}, not a text log.": "{} 是 {}，不是文本日志。",
    "{} has no header in the archive.": "压缩包中的 {} 没有头部。",
    "{} is no readable tar archive: {}.": "{} 不是可以读取的 tar 压缩包：{}。",
    "{} is no readable zip archive ({}).": "{} 不是可以读取的 zip 压缩包（{}）。",
    "Nothing of {} can be read: {}.": "{} 完全无法读取：{}。",
    "{} holds no templates of a healthy run ({}).": "{} 中没有正常运行的模板（{}）。",
    "{} holds {}, and this version reads {}.": "{} 的格式是 {}，而本版本读取的是 {}。",
    "{} is no healthy run: it failed itself, at line {}. Give a run that ended well.": "{} 不是正常的运行：它自己在第 {} 行失败了。请给出一次正常结束的运行。",
    # Telemetry.
    "{} cannot be read: {}.": "{} 无法读取：{}。",
    "{} is larger than {} MiB; that is no snapshot.": "{} 超过 {} MiB，不是快照。",
    "{}: {}: {}. Take one with `whycrash snapshot --out FILE`.": "{}：{}：{}。请用 `whycrash snapshot --out FILE` 采集。",
    "The address holds a user name or password; put a proxy before Prometheus that needs none.": "地址中含有用户名或密码；请在 Prometheus 前放一个不需要它们的代理。",
    "The log names no day that Prometheus could be asked about; add ?at=TIME to the address.": "日志中没有可以向 Prometheus 查询的日期；请在地址后加 ?at=时间。",
    "at={} is no time; write it as 2026-11-21T15:02:00Z.": "at={} 不是时间；请写成 2026-11-21T15:02:00Z。",
    "minutes={} is no number from 1 to {}.": "minutes={} 不是 1 到 {} 之间的数。",
    "{} begins with none of {}.": "{} 的开头不是 {} 之一。",
    "{} does not say whose metrics are the job's: add a label, such as ?instance=node7.* or ?pod=train-0.": "{} 没有说明哪些指标属于该作业：请加上标签，例如 ?instance=node7.* 或 ?pod=train-0。",
    "{} is no address: {}.": "{} 不是地址：{}。",
    "{} is not among the hosts that WHYCRASH_PROMETHEUS_HOSTS allows ({}).": "{} 不在 WHYCRASH_PROMETHEUS_HOSTS 允许的主机之列（{}）。",
    # Settings.
    "--lang is {}; it takes en or zh.": "--lang 的值是 {}；只能是 en 或 zh。",
    "{} cannot be written; give a file in a folder that is there.": "{} 无法写入；请给出已有文件夹中的文件。",
    "{} is {}; it takes an address that begins with http:// or https://.": "{} 的值是 {}；应是以 http:// 或 https:// 开头的地址。",
    "--slack takes the address of Slack's incoming webhook from {}, which is empty.": "--slack 从 {} 读取 Slack incoming webhook 的地址，而它是空的。",
    "Slack over HTTP needs WHYCRASH_SLACK_SIGNING_SECRET; the app's page at Slack shows it under Basic "
    "Information.": "通过 HTTP 接入 Slack 需要 WHYCRASH_SLACK_SIGNING_SECRET；它在 Slack 应用页面的 Basic Information 中。",
    "Socket Mode needs WHYCRASH_{}, which begins with `{}`; docs/slack.md tells how to get it.": "Socket Mode 需要 WHYCRASH_{}，以 `{}` 开头；docs/slack.md 说明了如何获取。",
    "WHYCRASH_DATABASE is no URL of a database; it looks like postgresql+psycopg://user:password@host/name.": "WHYCRASH_DATABASE 不是数据库的 URL；应形如 postgresql+psycopg://user:password@host/name。",
    "WHYCRASH_DATABASE names {}; whycrash keeps its data in SQLite or PostgreSQL.": "WHYCRASH_DATABASE 指定了 {}；whycrash 的数据只保存在 SQLite 或 PostgreSQL 中。",
    "WHYCRASH_DATABASE takes a file, as sqlite:////folder/whycrash.db; what is in memory is lost.": "WHYCRASH_DATABASE 要指定文件，例如 sqlite:////folder/whycrash.db；内存中的数据会丢失。",
    "WHYCRASH_HOST is {}, which others can reach, and there is no API key. Make one first with `whycrash keys add NAME`, or leave WHYCRASH_HOST at 127.0.0.1.": (
        "WHYCRASH_HOST 是 {}，其他人可以访问，而现在没有 API 密钥。请先用 `whycrash keys add NAME` 创建，或让 WHYCRASH_HOST 保持 "
        "127.0.0.1。"
    ),
    "WHYCRASH_PORT is {}; it takes at most {}, or 0 for any free one.": "WHYCRASH_PORT 是 {}；最大为 {}，0 表示任一空闲端口。",
    "WHYCRASH_LANG is {}; it takes en or zh.": "WHYCRASH_LANG 是 {}；只能是 en 或 zh。",
    "WHYCRASH_{} is {}; it takes a number.": "WHYCRASH_{} 是 {}；应是一个数。",
    "WHYCRASH_{} is {}; it takes {} or more.": "WHYCRASH_{} 是 {}；至少为 {}。",
    "{}: there is no setting {}; there are {}.": "{}：没有设置 {}；可用的是 {}。",
    "{}: {} takes a text in quotes, not {}.": "{}：{} 应是引号中的文本，而不是 {}。",
    "{} is not used: it must be yours, and no others may write it (chown to you, chmod go-w).": "没有使用 {}：它必须属于你自己，且其他人不能写入（chown 给自己，chmod go-w）。",
    "There is no home folder to keep the index in; set WHYCRASH_HOME to a folder of yours.": "没有可以存放索引的主目录；请把 WHYCRASH_HOME 设为自己的文件夹。",
    "{} is no valid TOML: {}.": "{} 不是合法的 TOML：{}。",
    "{}:{} cannot be bound ({}); set WHYCRASH_PORT or WHYCRASH_HOST to another.": "无法监听 {}:{}（{}）；请把 WHYCRASH_PORT 或 WHYCRASH_HOST 设为其他值。",
    # The index.
    "Another run takes logs in under {}; wait until it is done.": "另一个进程正在向 {} 导入日志，请等它完成。",
    "The index cannot be written to {} ({}); make room there. What stood before still stands.": "索引无法写入 {}（{}），请清理空间；原有的索引不受影响。",
    "The index under {} cannot be read ({}); remove {}.": "{} 下的索引无法读取（{}）；请删除 {}。",
    "The index under {} has format {}, this whycrash reads up to {}: get a newer whycrash, or set "
    "WHYCRASH_HOME to another folder.": "{} 下的索引格式是 {}，本 whycrash 最多读取 {}：请升级 whycrash，或把 WHYCRASH_HOME 设为另一个文件夹。",
    "{} cannot be written; set WHYCRASH_HOME to a folder of yours.": "{} 无法写入；请把 WHYCRASH_HOME 设为自己的文件夹。",
    "{} cannot be written ({}); make room there.": "{} 无法写入（{}），请清理空间。",
    "No case {}.": "没有案例 {}。",
}

# What a sentence may call a file that is no log.
NAMES: Mapping[str, str] = {
    "a compiled program": "编译好的程序",
    "an image": "图片",
    "a zip archive or a PyTorch checkpoint": "zip 压缩包或 PyTorch 检查点",
    "an empty zip archive": "空的 zip 压缩包",
    "a zstd archive": "zstd 压缩包",
    "an xz archive": "xz 压缩包",
    "a bzip2 archive": "bzip2 压缩包",
    "a 7z archive": "7z 压缩包",
    "an lz4 archive": "lz4 压缩包",
    "a database": "数据库",
    "an HDF5 file": "HDF5 文件",
    "a NumPy array": "NumPy 数组",
    "a Parquet file": "Parquet 文件",
    "an Arrow file": "Arrow 文件",
    "a model's weights": "模型权重",
    "a pickle": "pickle 文件",
    "a PDF": "PDF 文件",
    "a PyTorch checkpoint": "PyTorch 检查点",
    "a Python wheel": "Python wheel 包",
    "an Office document": "Office 文档",
    "a Java archive": "Java 归档",
    "It holds nothing.": "里面什么都没有。",
}


def told(error: Exception, language: Language) -> str:
    """Give the sentence of an error."""
    return worded(
        type(error).__name__, str(error), language, error.wait if isinstance(error, RequestError) else None
    )


def of_failed(failed: TriageFailed, language: Language) -> str:
    """Give the sentence of a task that failed."""
    return worded(failed.type, failed.error, language, failed.retry_after)


def worded(kind: str, english: str, language: Language, wait: float | None = None) -> str:
    """Give a sentence in a language, by its words or by its kind.

    What is not known stays English rather than be lost.
    """
    if language == "en":
        return english
    if found := known(english):
        return found
    kind = kind.removesuffix("Error")
    own = KINDS.get(kind, "").format(wait=f"{max(1.0, wait or 5.0):.0f}")
    return f"{own}（{english}）" if own and english and kind in _VAGUE else own or english


def known(english: str) -> str:
    """Give the Chinese of a sentence of the table; empty where it is none of them."""
    for shape, chinese in _shapes():
        if match := shape.fullmatch(english):
            return chinese.format(*(NAMES.get(value, value) for value in match.groups()))
    return ""


@cache
def _shapes() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Make expressions of the table, those with the most words of their own first: they say more of what they match."""
    ordered = sorted(SENTENCES, key=lambda english: -len(english.replace("{}", "")))
    return tuple(
        (re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL), SENTENCES[english])
        for english in ordered
    )

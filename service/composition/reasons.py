"""Why something was dropped, not measured or not believed.

The reasons, made in English, told in the answer's language.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache

from corpus.schema import Language
from service.schemas.diagnosis import Dropped, Telemetry

# Each `{}` stands for what differs; the Chinese takes them in the same order, or by number.
_CHANGES: Mapping[str, str] = {
    "the job has this value already": "作业已是这个值",
    "it is the default already": "默认值就是它",
    "the job does not run {}": "作业没有运行 {}",
    "{} has no such option": "{} 没有这个选项",
    "no version has both it and {}, which the job sets": "没有哪个版本同时有它和作业设置的 {}",
    "no version has both it and {}, which is proposed": "没有哪个版本同时有它和已提出的 {}",
    "not for version {} ({})": "不适用于版本 {}（{}）",
    "not in the catalogue for version unknown": "目录中没有这项设置（版本未知）",
    "not in the catalogue for version {}": "目录中没有版本 {} 的这项设置",
    "the job's {} is further in that direction already": "作业现有的 {} 在这个方向上已走得更远",
    "{} is no bool": "{} 不是布尔值",
    "{} is no int": "{} 不是整数",
    "{} is no float": "{} 不是数字",
    "{} is under the least value {}": "{} 小于最小值 {}",
    "{} is over the greatest value {}": "{} 大于最大值 {}",
    "{} is none of {}": "{} 不在可选值中：{}",
}

_MODEL: Mapping[str, str] = {
    "stands in no line that was sent": "不在发送给模型的任何一行中",
    "is not among those that were sent": "不在发送给模型的内容之列",
    "is not among the changes that are left": "不在剩下的修改之列",
    "the offered value is another": "给出的值与所提供的不同",
    "is not in the catalogue for any framework of this version": "目录中没有这项设置",
    "is not in the catalogue for {} of this version": "目录中没有该版本 {} 的这项设置",
    "is not a change that is known to help against this cause": "不是已知能解决此原因的修改",
    "the model names it, but no rule does; it is told as a possibility only": "只有模型提到它，没有规则支持，仅作为可能性列出",
    "there is no such cause": "没有这个原因",
    "the log holds text that speaks to a model, so a model decides nothing": "日志中含有写给模型的文字，因此不由模型作决定",
    "no quote that stands speaks for it": "没有成立的引文支持它",
    "holds markup": "含有标记语言",
    "holds a link or an address": "含有链接或地址",
    "holds a command": "含有命令",
    "holds a number to call or a way to reach somebody": "含有电话号码或联系方式",
    "speaks of credentials": "涉及凭据",
    "leads the reader elsewhere": "引导读者到别处",
    "cites {}, which was not sent": "引用了 {}，而它没有发送给模型",
    "repeats text that is written to a model": "复述了写给模型的文字",
    "says that nothing failed": "说没有发生失败",
    "proposes to change what cannot be: {}": "建议修改不能改的：{}",
    "names {}, which nothing in the log speaks for": "提到 {}，而日志中没有迹象支持它",
    "sets {} to a value that is not among the changes": "把 {} 设成了修改中没有的值",
    "names {}, which is neither among the changes nor in the cited line": "提到 {}，而它既不在修改中，也不在所引用的行中",
    "holds the number {}, which was not sent": "含有数字 {}，而它没有发送给模型",
    "quotes {}, which was not sent": "引用了 {}，而它没有发送给模型",
    "says nothing": "没有内容",
    "cites neither a line nor a case": "没有引用任何行或案例",
    "is in another language": "用的是另一种语言",
}

_NOTES: Mapping[str, str] = {
    "The first answer stands.": "以最初的答案为准。",
    "The answer is from what is known without a model.": "这个回答来自不用模型就已知的内容。",
    "Too little of the model's answer could be checked; this one is from what is known without it.": "模型的回答中能核对的太少；这个回答来自不用模型就已知的内容。",
    "Too little of the model's explanation could be checked.": "模型的解释中能核对的太少。",
    "The log shows no failure, so no model was asked.": "日志里没有失败，因此没有询问模型。",
    "Two causes fit; the model decided for {}.": "有两个原因都说得通；模型选择了 {}。",
    "The model speaks for another cause, which the log does not prove.": "模型认为是另一个原因，但日志不能证明。",
    "{} lines of the log speak to a model; they were withheld, and the model decided nothing.": "日志中有 {} 行是写给模型的；这些行没有发送，也没有由模型作决定。",
    "The model did not answer within {} s.": "模型没有在 {} 秒内回答。",
    "The model gave an empty answer.": "模型的回答是空的。",
    "The model's answer is not in the form that was asked for: {}.": "模型的回答不是要求的格式：{}。",
    "The model's server takes neither a schema nor a plain prompt.": "模型服务既不接受 schema，也不接受普通提示。",
    "The model's client failed: {}": "模型客户端出错：{}",
    "The model refuses: {}": "模型拒绝回答：{}",
    "The model's quota is used up: {}": "模型的配额已用完：{}",
    "The model's server is over its rate limit: {}": "模型服务限流：{}",
    "The model's server failed or cannot be reached: {}": "模型服务出错或无法访问：{}",
    "The model's server takes no output schema: {}": "模型服务不接受输出 schema：{}",
    "The model's server does not take the request ({}): {}": "模型服务不接受该请求（{}）：{}",
    "A model needs the packages of the extra `model`: install whycrash[model].": "使用模型需要 extra `model` 的软件包：请安装 whycrash[model]。",
    "The model {} cannot be set up: {}": "模型 {} 无法启用：{}",
    "WHYCRASH_MODEL_KEY_ENV names {}, which is not set.": "WHYCRASH_MODEL_KEY_ENV 指定的 {} 没有设置。",
}

_READINGS: Mapping[str, str] = {
    "not in the snapshot": "快照中没有",
    "the snapshot has no {}": "快照中没有 {}",
    "the snapshot holds no course of it up to the crash": "快照中没有它直到崩溃时的变化过程",
    "the snapshot holds no long enough course of it up to the crash": "快照中它直到崩溃时的变化过程不够长",
    "the snapshot was taken {} hours after the crash": "快照是在崩溃 {} 小时之后采集的",
    "the baseline is later than the crash": "基线晚于崩溃",
    "the kernel's log was not read up to the crash": "内核日志没有读到崩溃的时刻",
    "NVML was not asked": "没有查询 NVML",
}

_PATCHES: Mapping[str, str] = {
    "the file is no UTF-8 text": "文件不是 UTF-8 文本",
    "another change of this file sets it otherwise": "此文件的另一处修改把它设成了别的值",
    "the changed file could not be read any more": "修改后的文件无法再解析",
    "the value could not be found again in the changed file": "在修改后的文件中找不到该值",
    "its dependencies are resolved by a tool; change them with it": "其依赖由工具解析，请用该工具修改",
    "it is Python code; change it by hand": "它是 Python 代码，请手工修改",
    "its format is not one that is patched": "这种格式不自动打补丁",
    "two changes meet in the same place": "两处修改落在同一位置",
    "several scripts set it (one in line {})": "有多个脚本设置它（其一在第 {} 行）",
    "a directive and the command in line {} both set it": "有一条指令和第 {} 行的命令都设置了它",
    "no command of the script takes it; it is an option of {}": "脚本中没有接受它的命令；它是 {} 的选项",
    "it is a command of its own; run it by hand": "它是一条单独的命令，请手工执行",
    "it is part of a JSON file, which the script only names": "它属于某个 JSON 文件，脚本只是引用该文件",
    "it is set in the program's own code": "它在程序自己的代码中设置",
    "packages are not installed by the settings of a script": "软件包不由脚本中的设置安装",
    "line {}: cannot be read as bash": "第 {} 行：无法按 bash 解析",
    "the file holds a NUL byte and is no script": "文件含有 NUL 字节，不是脚本",
    "the file is no Python that can be read": "文件不是可以读取的 Python 代码",
    "the script is nested too deeply to be read": "脚本嵌套过深，无法解析",
    "line {}: it stands in a here-document, the text of another file": "第 {} 行：它在 here-document 中，属于另一个文件的内容",
    "line {}: it stands in a place that cannot be changed safely": "第 {} 行：所在的位置不能安全修改",
    "line {}: it stands there without a value": "第 {} 行：那里没有写值",
    "line {}: --{} stands there, which excludes it": "第 {} 行：那里有 --{}，与它互斥",
    "line {}: the script unsets it": "第 {} 行：脚本取消了它",
    "line {}: the script there would begin differently": "第 {} 行：那里的脚本开头会因此改变",
    "line {}: the string there is cut at blanks, and the value has one": "第 {} 行：那里的字符串会按空格切分，而值中有空格",
    "line {}: its quoting is mixed ({})": "第 {} 行：引号写法混杂（{}）",
    "line {}: its value is computed there ({})": "第 {} 行：它的值是在那里算出来的（{}）",
    "line {}: the command has more than {} words": "第 {} 行：命令超过 {} 个词",
    "line {}: several values may follow {}": "第 {} 行：{} 后面可以跟多个值",
    "line {}: it stands there as a switch without a value": "第 {} 行：它在那里是不带值的开关",
    "line {}: how {} is turned off depends on the version": "第 {} 行：如何关闭 {} 取决于版本",
    "line {}: its name is composed ({})": "第 {} 行：它的名字是拼出来的（{}）",
    "line {}: the key moves to {}; move it by hand": "第 {} 行：该键要移到 {}，请手工移动",
    "line {}: one command gets it; take it out by hand": "第 {} 行：只有一条命令用到它，请手工去掉",
    "line {}: it is set for the script alone, behind another variable": "第 {} 行：它只对脚本自身生效，且写在另一个变量之后",
    "line {}: {} sets it for the script alone": "第 {} 行：{} 使它只对脚本自身生效",
    "line {}: {} keeps the script's variables from the job": "第 {} 行：{} 使作业得不到脚本的变量",
    "line {}: the job's environment stands in a file": "第 {} 行：作业的环境变量写在文件里",
    "line {}: the runtime environment is computed, or is no JSON": "第 {} 行：runtime environment 是算出来的，或不是 JSON",
    "line {}: the runtime environment cannot be changed safely": "第 {} 行：runtime environment 不能安全修改",
    "{}, which the script does not assign": "{}，脚本没有给它赋值",
    "{}, which line {} computes ({})": "{}，它在第 {} 行是算出来的（{}）",
    "{}, which line {} computes": "{}，它在第 {} 行是算出来的",
    "{}, which is assigned more than once (lines {})": "{}，它被多次赋值（第 {} 行）",
    "{}, which line {} does not assign plainly": "{}，第 {} 行不是直接赋值",
    "{}, which only line {} assigns, after it is used": "{}，只有第 {} 行给它赋值，且在使用之后",
    "{}, which is used elsewhere too (line {})": "{}，它在别处也被用到（第 {} 行）",
    "the script has no #SBATCH line": "脚本中没有 #SBATCH 行",
    "it is a directive of the batch script, which a YAML file of settings does not hold": "它是批处理脚本的指令，YAML 设置文件中没有这种内容",
    "it is an argument in Python code, which a YAML file of settings does not hold": "它是 Python 代码中的参数，YAML 设置文件中没有这种内容",
    "it is a package, which a YAML file of settings does not hold": "它是软件包，YAML 设置文件中没有这种内容",
    "it is a command, which a YAML file of settings does not hold": "它是命令，YAML 设置文件中没有这种内容",
    "it is part of a JSON file, which a YAML file of settings does not hold": "它属于某个 JSON 文件，YAML 设置文件中没有这种内容",
    "the value is described, not given; write it by hand": "只描述了值，没有给出，请手工填写",
    "the value depends on the machine ({}); write it by hand": "该值取决于机器（{}），请手工填写",
    "the value has more than one line": "该值不止一行",
    "the edit would change more than this value": "这处编辑会改动不止这一个值",
    "the key is read otherwise than it is written ({})": "该键读到的与写的不同（{}）",
    "the key is written in an unusual way ({})": "该键的写法不常见（{}）",
    "the new name would change more than the key": "新名字会改动不止这个键",
    "the script does not set it, and how it is turned off is not known": "脚本没有设置它，也不知道如何关闭它",
    "the script does not set it, and no command in it takes settings of {}": "脚本没有设置它，其中也没有命令接受 {} 的设置",
    "the script does not set it, and several commands could take it (lines {})": "脚本没有设置它，而有多条命令都可以接受它（第 {} 行）",
    "the script does not set {}": "脚本没有设置 {}",
    "several commands set it (lines {})": "有多条命令设置它（第 {} 行）",
    "several commands could take it (lines {})": "有多条命令可以接受它（第 {} 行）",
    "only one of several commands gets it (line {})": "多条命令中只有一条用到它（第 {} 行）",
    "no command of the script starts the job": "脚本中没有启动作业的命令",
    "the job runs in a container or on a cluster; install it there": "作业在容器或集群中运行，请在那里安装",
    "Ray's own processes read it; set it before the `ray start` of every node": "它由 Ray 自身的进程读取；请在每个节点 `ray start` 之前设置",
    "the settings stand in {}; change it there": "设置写在 {} 中，请在那里修改",
    "it is part of a configuration file, which the script does not hold": "它属于配置文件，脚本中没有",
    "it is taken out with ~ (line {})": "它已用 ~ 去掉（第 {} 行）",
    "it is set more than once, and not always (lines {})": "它被多次设置，且并非总会执行（第 {} 行）",
    "it is set more than once (lines {})": "它被多次设置（第 {} 行）",
    "it is set in several ways (lines {})": "它以多种方式设置（第 {} 行）",
    "the variable is to be removed or composed by hand": "该变量须手工去掉或拼写",
    "a {} is no environment variable": "{} 不是环境变量",
    "a {} is not set in a JSON file": "{} 不在 JSON 文件中设置",
    "a {} is not changed in a manifest": "{} 不在 manifest 中修改",
    "a {} is not set among the requirements": "{} 不在依赖清单中设置",
    "environment variables are set where the job is started, not in a file of settings": "环境变量在启动作业的地方设置，不在设置文件中",
    "the file sets no environment variables (`env_vars`)": "文件没有设置环境变量（`env_vars`）",
    "the file has no FROM line": "文件中没有 FROM 行",
    "the file does not set it, and a flag belongs to a command": "文件没有设置它，而参数属于命令",
    "the file does not set it, and does not look like a configuration of {}": "文件没有设置它，看起来也不是 {} 的配置",
    "the file does not set {}": "文件没有设置 {}",
    "the file looks like a configuration of {}, not of {}": "文件看起来是 {} 的配置，而不是 {} 的",
    "the file has no `{}` to which it belongs": "文件中没有它所属的 `{}`",
    "the file holds the group {}, to which it does not belong": "文件写的是 {} 组，它不属于该组",
    "the file is no JSON object": "文件不是 JSON 对象",
    "the file is no JSON that can be read safely": "文件不是可以安全读取的 JSON",
    "the file is no YAML mapping": "文件不是 YAML 映射",
    "the file is no YAML that a safe loader reads": "文件不是安全加载器能读的 YAML",
    "the file is no valid YAML ({})": "文件不是合法的 YAML（{}）",
    "the file is longer than {} characters": "文件超过 {} 个字符",
    "the file nests more than {} levels": "文件嵌套超过 {} 层",
    "the file holds {} YAML documents": "文件含有 {} 个 YAML 文档",
    "the file has no list of `dependencies`": "文件中没有 `dependencies` 列表",
    "the file pins by hashes; a line without them would make pip refuse all": "文件用哈希锁定版本；加入没有哈希的行会使 pip 全部拒绝",
    "the aliases of the file stand for too many values": "文件中的 alias 展开后值过多",
    "the environment has no pip section to add it to": "该环境没有可以加入它的 pip 部分",
    "the last line goes on with a backslash": "最后一行以反斜杠续行",
    "the key `{}` stands twice (lines {} and {})": "键 `{}` 出现了两次（第 {} 行和第 {} 行）",
    "{} is set twice (lines {} and {})": "{} 设置了两次（第 {} 行和第 {} 行）",
    "{} is installed more than once (lines {})": "{} 安装了不止一次（第 {} 行）",
    "{} stands more than once (lines {})": "{} 出现了不止一次（第 {} 行）",
    "{} stands more than once": "{} 出现了不止一次",
    "{} stands in a manifest; rename it by hand": "{} 写在 manifest 中，请手工改名",
    "{} is no number to write": "{} 不是可以写入的数字",
    "`{}` is no version of a package": "`{}` 不是软件包的版本",
    "`{}` comes out of a merge key (`<<`); an own `{}` would hide all of it": "`{}` 来自合并键（`<<`）；另写 `{}` 会把它整个遮住",
    "`{}` in line {} shares its value with another place by an anchor": "第 {1} 行的 `{0}` 通过 anchor 与另一处共用值",
    "`{}` in line {} is an alias written in an unusual way": "第 {1} 行的 `{0}` 是写法不常见的 alias",
    "`{}` in line {} is no mapping": "第 {1} 行的 `{0}` 不是映射",
    "`{}` in line {} has no value": "第 {1} 行的 `{0}` 没有值",
    "`env` in line {} is no list": "第 {} 行的 `env` 不是列表",
    "{} in line {} gets its value from elsewhere": "第 {1} 行的 {0} 从别处取值",
    "it is a package of {}, not of pip": "它是 {} 的软件包，不是 pip 的",
    "its value in line {} is computed ({})": "它在第 {} 行的值是算出来的（{}）",
    "its value in line {} is used elsewhere too by an anchor": "它在第 {} 行的值通过 anchor 在别处也被用到",
    "line {} sets {} in the old form without `=`": "第 {} 行用不带 `=` 的旧写法设置 {}",
    "line {} sets {}, and line {} the right name": "第 {} 行设置了 {}，第 {} 行设置了正确的名字",
    "line {} installs it from an address or under a condition": "第 {} 行从某个地址或有条件地安装它",
    "line {} installs {} from an address ({})": "第 {} 行从某个地址安装 {}（{}）",
    "line {} pins {} by hashes or over several lines": "第 {} 行用哈希或跨多行锁定 {}",
    "line {} is no requirement that pip reads": "第 {} 行不是 pip 能读的依赖项",
    "line {} is no valid YAML ({})": "第 {} 行不是合法的 YAML（{}）",
    "line {} is written in an unusual way": "第 {} 行的写法不常见",
    "line {} is computed or used elsewhere too ({})": "第 {} 行是算出来的，或在别处也被用到（{}）",
    "line {} is an alias of another place": "第 {} 行是另一处的 alias",
    "line {} is used elsewhere too by an anchor": "第 {} 行通过 anchor 在别处也被用到",
    "line {} contains itself by an alias": "第 {} 行通过 alias 包含了自身",
    "line {} ends in an alias or an empty value": "第 {} 行以 alias 或空值结尾",
    "line {} has comments, which plain JSON has not": "第 {} 行有注释，而普通 JSON 不允许注释",
    "line {} has no valid JSON ({})": "第 {} 行不是合法的 JSON（{}）",
    "line {} has a carriage return within it": "第 {} 行中间有回车符",
    "line {} has a key that is no plain word": "第 {} 行的键不是普通的词",
    "line {} holds an object there": "第 {} 行那里是一个对象",
    "line {} holds another kind of value there": "第 {} 行那里是另一种类型的值",
    "line {} holds a block of text": "第 {} 行是一个文本块",
    "line {} holds a mapping there": "第 {} 行那里是一个映射",
    "line {} holds a list there": "第 {} 行那里是一个列表",
    "line {} holds a single value there": "第 {} 行那里是单个值",
    "the list in line {} is to be changed by hand": "第 {} 行的列表须手工修改",
    "the list in line {} is used elsewhere too by an anchor": "第 {} 行的列表通过 anchor 在别处也被用到",
    "the list in line {} ends unusually": "第 {} 行的列表结尾不常见",
    "the mapping in line {} is used elsewhere too by an anchor": "第 {} 行的映射通过 anchor 在别处也被用到",
    "the value in line {} has a tag of its own": "第 {} 行的值带有自己的 tag",
    "the environment in line {} is an alias of another place": "第 {} 行的环境变量是另一处的 alias",
    "no container sets it, and it is open which of them is the job": "没有容器设置它，也不确定哪个容器是作业",
    "there is no place for it in the manifest": "manifest 中没有它的位置",
    "the containers differ in it (lines {})": "各容器的值不同（第 {} 行）",
    "it stands as a switch in line {}; take it out by hand": "它在第 {} 行是一个开关，请手工去掉",
    "the command in line {} is a line for a shell; add `{}` by hand": "第 {} 行的命令是交给 shell 的一整行，请手工加上 `{}`",
    "the command in line {} does not set it, and there is no value to add": "第 {} 行的命令没有设置它，也没有可加的值",
    "the command line in line {} sets it in a way that is to be changed by hand": "第 {} 行的命令行对它的设置方式须手工修改",
}

# What a dropped claim was; the rest of `what` are names.
_WHAT: Mapping[str, str] = {
    "patch of {}": "{} 的补丁",
    "quote {}": "引文 {}",
    "case {}": "案例 {}",
    "cause {}": "原因 {}",
    "change {}: {}={}": "修改 {}: {}={}",
}

_SENTENCE = re.compile(r"(?<=\.) (?=[A-Z])")
_Shapes = list[tuple[re.Pattern[str], str]]


def translate_reasons(dropped: Iterable[Dropped], language: Language) -> tuple[Dropped, ...]:
    """Give what was dropped and why in a language; what is in it already stays as it is."""
    if language == "en":
        return tuple(dropped)
    return tuple(
        item.model_copy(
            update={"what": _match(item.what, _whats()) or item.what, "why": reason(item.why, language)}
        )
        for item in dropped
    )


def translate_readings(said: Telemetry, language: Language) -> Telemetry:
    """Give what the machine says with the reasons of missing readings in a language."""
    if language == "en":
        return said
    causes = []
    for cause in said.causes:
        readings = [
            item.model_copy(update={"unavailable": item.unavailable and reason(item.unavailable, language)})
            for item in cause.readings
        ]
        causes.append(cause.model_copy(update={"readings": tuple(readings)}))
    return said.model_copy(update={"causes": tuple(causes)})


def reason(text: str, language: Language) -> str:
    """Give a reason in a language; one that is not known here stays English rather than be lost."""
    if language == "en":
        return text
    return _EVERY.get(text) or _match(text, _shapes()) or text


def note(text: str, language: Language) -> str:
    """Give what became of a model in a language; a server's own words stay as they are."""
    if language == "en":
        return text
    return " ".join(reason(sentence, language) for sentence in _SENTENCE.split(text)).replace("。 ", "。")


_EVERY: Mapping[str, str] = {**_CHANGES, **_MODEL, **_NOTES, **_READINGS, **_PATCHES}


@cache
def _shapes() -> _Shapes:
    return _compiled(_EVERY)


@cache
def _whats() -> _Shapes:
    return _compiled(_WHAT)


def _compiled(table: Mapping[str, str]) -> _Shapes:
    """Make expressions of templates, those with the most words of their own first.

    They say more of what they match.
    """
    templates = sorted(
        (english for english in table if "{}" in english), key=lambda english: -len(english.replace("{}", ""))
    )
    return [
        (re.compile("(.+?)".join(map(re.escape, english.split("{}"))), re.DOTALL), table[english])
        for english in templates
    ]


def _match(text: str, shapes: _Shapes) -> str:
    for shape, chinese in shapes:
        if found := shape.fullmatch(text):
            return chinese.format(*found.groups())
    return ""
